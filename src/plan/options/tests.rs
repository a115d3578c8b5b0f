use super::*;
use crate::plan::topics::{PartitionName, TopicPattern};

fn parsed(given: &[(&str, &str)]) -> Result<ReadOptions> {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    ReadOptions::parse(&given, &[])
}

fn refused(given: &[(&str, &str)]) -> String {
    parsed(given).unwrap_err().to_string()
}

fn offsets(topic: &str, partition: i32, offset: i64) -> crate::plan::bounds::ByPartition {
    [(PartitionName::new(topic, partition), offset)].into()
}

type Check = fn(&ReadOptions) -> bool;

/// For every option but `engine`, which selects the caller of this code: a value, and what it sets.
const GOOD: &[(&str, &str, Check)] = &[
    ("path", "/a", |options| options.paths == ["/a"]),
    ("paths", r#"["/a"]"#, |options| options.paths == ["/a"]),
    ("storage.<name>", "http://s", |options| options.storage == [("<name>".to_owned(), "http://s".to_owned())]),
    ("encryptionKeys", r#"{"key1": "/k.pem"}"#, |options| {
        options.encryption_keys == [("key1".to_owned(), "/k.pem".to_owned())]
    }),
    ("remote", "s3://bucket/tiered", |options| options.remote.as_deref() == Some("s3://bucket/tiered")),
    ("remoteLogMetadata", "/logs", |options| options.remote_log_metadata.as_deref() == Some("/logs")),
    ("subscribe", " a, b,a", |options| {
        options.subscription == Subscription::Topics(vec!["a".to_owned(), "b".to_owned()])
    }),
    ("subscribePattern", "a.*", |options| {
        options.subscription == Subscription::Pattern(TopicPattern::parse("a.*").unwrap())
    }),
    ("assign", r#"{"a": [0, 2]}"#, |options| {
        let partitions = vec![PartitionName::new("a", 0), PartitionName::new("a", 2)];
        options.subscription == Subscription::Partitions(partitions)
    }),
    ("startingOffsets", "latest", |options| options.starting_offsets == Some(Bound::Latest)),
    ("endingOffsets", r#"{"a": {"0": 3}}"#, |options| {
        options.ending_offsets == Some(Bound::Offsets(offsets("a", 0, 3)))
    }),
    ("startingTimestamp", "1700000000000", |options| options.starting_timestamp == Some(1_700_000_000_000)),
    ("endingTimestamp", "2026-11-22T00:00:00Z", |options| options.ending_timestamp == Some(1_795_305_600_000)),
    ("startingOffsetsByTimestamp", r#"{"a": {"0": 0}}"#, |options| {
        options.starting_timestamps == Some(Bound::Timestamps(offsets("a", 0, 0)))
    }),
    ("endingOffsetsByTimestamp", r#"{"a": {"0": 1700000000000}}"#, |options| {
        options.ending_timestamps == Some(Bound::Timestamps(offsets("a", 0, 1_700_000_000_000)))
    }),
    ("startingOffsetsByTimestampStrategy", "Latest", |options| {
        options.timestamp_strategy == Some(TimestampStrategy::Latest)
    }),
    ("failOnDataLoss", "False", |options| !options.fail_on_data_loss),
    ("replicas", "Longest", |options| options.replicas == Replicas::Longest),
    ("isolationLevel", "READ_COMMITTED", ReadOptions::is_committed),
    ("minPartitions", "7", |options| options.min_partitions == Some(7)),
    ("maxRecordsPerPartition", "8", |options| options.max_records_per_partition == Some(8)),
    ("maxPartitionBytes", "1 KB", |options| options.max_partition_bytes == 1024),
    ("maxOffsetsPerTrigger", "9", |options| options.max_offsets_per_trigger == Some(9)),
    ("minOffsetsPerTrigger", "5", |options| options.min_offsets_per_trigger == Some(5)),
    ("maxTriggerDelay", "2m", |options| options.max_trigger_delay == 120_000),
    ("view", "Batches", |options| options.view == PlanView::Batches),
    ("columns", "offset, base_offset", |options| options.columns == ["offset", "base_offset"]),
    ("includeHeaders", "true", |options| options.include_headers),
    ("includeControl", "TRUE", |options| options.include_control),
    ("checkCrc", "false", |options| !options.check_crc),
    ("onCorrupt", "SKIP", |options| options.on_corrupt == OnCorrupt::Skip),
    ("leavePageCache", "true", |options| options.leave_page_cache),
    ("metricsPath", "file:///m/./n", |options| options.metrics_path.as_deref() == Some("/m/n")),
    ("topic", "t", |options| options.topic.as_deref() == Some("t")),
    ("partition", "3", |options| options.partition == Some(3)),
    ("maxBatchLen", "1m", |options| options.limits.batch_len == 1 << 20),
    ("maxDecompressedLen", "2g", |options| options.limits.decompressed_len == 2 << 30),
    ("maxRatio", "2", |options| options.limits.ratio == 2),
    ("ratioFreeLen", "3b", |options| options.limits.ratio_free_len == 3),
    ("maxRecordCount", "4", |options| options.limits.record_count == 4),
    ("maxHeaderCount", "0", |options| options.limits.header_count == 0),
];

#[test]
fn every_option_sets_its_field() {
    for (name, text, is_set) in GOOD {
        assert!(is_set(&parsed(&[(name.to_lowercase().as_str(), *text)]).unwrap()), "{name}");
        assert!(!is_set(&ReadOptions::default()), "{name}");
    }
    let tested = |name: &&str| GOOD.iter().any(|(known, ..)| known == name);
    let others: Vec<&str> = option_rows().iter().map(|row| row.name).filter(|name| !tested(name)).collect();
    assert_eq!(others, ["engine"]);
}

#[test]
fn bounds_are_times_before_times_by_partition_before_offsets() {
    let mut given = vec![
        ("startingTimestamp", "0"),
        ("endingTimestamp", " 1700000000009 "),
        ("startingOffsetsByTimestamp", r#"{"a": {"0": 1700000000007}}"#),
        ("endingOffsetsByTimestamp", r#"{"a": {"0": 1700000000008}}"#),
        ("startingOffsets", "earliest"),
        ("endingOffsets", "latest"),
    ];
    let bounds = |given: &[(&str, &str)]| {
        let options = parsed(given).unwrap();
        (options.start(), options.end())
    };
    let times = |time| Some(Bound::Timestamps(offsets("a", 0, time)));
    assert_eq!(bounds(&given), (Some(Bound::Timestamp(0)), Some(Bound::Timestamp(1_700_000_000_009))));
    given.drain(..2);
    assert_eq!(bounds(&given), (times(1_700_000_000_007), times(1_700_000_000_008)));
    given.drain(..2);
    assert_eq!(bounds(&given), (Some(Bound::Earliest), Some(Bound::Latest)));
    assert_eq!(bounds(&[]), (None, None));
}

#[test]
fn one_option_under_two_names_has_one_value() {
    assert!(parsed(&[("isolationLevel", "read_committed"), ("kafka.isolation.level", "READ_COMMITTED")]).is_ok());
    let different = [("isolationLevel", "read_committed"), ("kafka.isolation.level", "read_uncommitted")];
    assert!(refused(&different).contains("options isolationLevel and kafka.isolation.level conflict"));
    assert!(parsed(&[("path", "/a"), ("PATH", "/a")]).is_ok());
    assert!(refused(&[("path", "/a"), ("PATH", "/b")]).contains("options path and PATH conflict"));
}

#[test]
fn secrets_are_in_no_message() {
    for given in [
        [("storage.key", "hunter2"), ("storage.KEY", "hunter3")],
        [("encryptionKeys", "hunter2"), ("path", "/a")],
        [("storage_options", "hunter2"), ("path", "/a")],
    ] {
        assert!(!refused(&given).contains("hunter"));
    }
}

#[test]
fn locations_of_tasks_are_absolute() {
    for name in ["remote", "remoteLogMetadata"] {
        assert!(refused(&[(name, "tiered")]).contains("must be a URL, or an absolute path"), "{name}");
        assert!(parsed(&[(name, "/tiered")]).is_ok() && parsed(&[(name, "s3://bucket/tiered")]).is_ok(), "{name}");
    }
}

#[test]
fn paths_are_absolute() {
    let paths = |path| parsed(&[("path", path)]).unwrap().absolute_paths().map(|paths| paths.concat());
    for (path, expected) in [
        ("/a/b/", "/a/b"),
        ("/a/./b/../c", "/a/c"),
        ("/../a", "/a"),
        ("file:/a", "/a"),
        ("FILE:///a//b", "/a/b"),
        ("s3a://bucket/../a", "s3a://bucket/../a"),
        ("S3://bucket", "S3://bucket"),
        ("/a:/b", "/a:/b"),
    ] {
        assert_eq!(paths(path).unwrap(), expected);
    }
    let directory = std::env::current_dir().unwrap();
    assert_eq!(paths("x/../y").unwrap(), directory.join("y").to_str().unwrap());
    for (path, message) in [
        ("hdfs://host/a", "hdfs://host/a is not in a local file system"),
        ("dbfs:/a", "dbfs:/a is not in a local file system"),
        ("s3:/bucket/a", "pathlib removes a slash from URLs"),
        ("memory://a", "is in the memory of one process"),
    ] {
        assert!(paths(path).unwrap_err().to_string().contains(message), "{path}");
    }
    assert!(refused(&[("metricsPath", "s3a://b/m")]).contains("option metricsPath='s3a://b/m': s3a://b/m is not in a"));
}

#[test]
fn the_options_of_a_session_are_for_s3() {
    let session = [("region".to_owned(), "eu-west-1".to_owned())];
    let storage = |path: &str| {
        let given = [("path".to_owned(), path.to_owned())];
        ReadOptions::parse(&given, &session).unwrap().storage().unwrap().0
    };
    assert_eq!(storage("s3a://b/x"), session);
    assert_eq!(storage("S3://b/x"), session);
    assert!(storage("gs://b/x").is_empty() && storage("/x").is_empty());
    let own = parsed(&[("path", "s3://b/x"), ("storage.SECRET.access_key_id", "a")]).unwrap();
    assert_eq!(own.storage().unwrap().0, [("access_key_id".to_owned(), "a".to_owned())]);
}

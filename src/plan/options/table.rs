//! The table of options: name, text, default and parser.

use crate::arrow::{Isolation, OnCorrupt};
use crate::error::{Error, Result};
use crate::plan::bounds::{parse_offsets, parse_timestamps};
use crate::plan::discover::Replicas;
use crate::plan::options::rows::{OptionParser, OptionRow, OptionTable, narrowed, row, set};
use crate::plan::options::{ReadOptions, TimestampStrategy};
use crate::plan::topics::{Subscription, TopicPattern, parse_assign, parse_topics};
use crate::plan::values::{
    Parsed, one_of, parse_bool, parse_count, parse_directory, parse_duration, parse_len, parse_names, parse_pairs,
    parse_paths, parse_positive_count, parse_positive_len, parse_text, parse_timestamp,
};

/// All options, in the order of the documentation.
#[must_use]
pub fn option_rows() -> &'static [OptionRow<ReadOptions>] {
    ROWS
}

fn length(text: &str) -> Parsed<usize> {
    parse_len(text).and_then(|number| narrowed(number, "the address space of this machine"))
}

fn count(text: &str) -> Parsed<usize> {
    parse_count(text).and_then(|number| narrowed(number, "the address space of this machine"))
}

/// A location that every task opens, possibly in another working directory.
fn location(text: &str) -> Parsed<String> {
    let text = parse_text(text)?;
    if text.starts_with('/') || text.contains(':') {
        return Ok(text);
    }
    Err("must be a URL, or an absolute path that all machines have".to_owned())
}

static ROWS: &[OptionRow<ReadOptions>] = &[
    row(
        "path",
        "",
        |options, text| {
            options.paths.insert(0, parse_text(text)?);
            Ok(())
        },
        "a .log file, a partition directory, a log directory, or a glob of them; or the URL of one in a store",
    ),
    row(
        "paths",
        "",
        |options, text| {
            options.paths.extend(parse_paths(text)?);
            Ok(())
        },
        "several paths, as a JSON list; load([...]) sets it",
    ),
    OptionRow {
        is_secret: true,
        ..row(
            "storage.<name>",
            "",
            |_, text| parse_text(text).map(drop), // `parse` keeps the name too
            "how to open the store of a URL, with the names of object_store, such as storage.endpoint, \
             storage.access_key_id, storage.secret_access_key; default: for s3:// and s3a:// the session's \
             spark.hadoop.fs.s3a.* settings, in kbat.spark.read and after kbat.spark.register; then the environment, or \
             the role of the machine. Spark shows options in the plans of views and streams, except those whose names \
             match spark.redaction.regex, such as secret_access_key and session_token: write any other one that must \
             stay hidden as storage.secret.<name>, such as storage.secret.azure_storage_account_key",
        )
    },
    OptionRow {
        is_secret: true,
        ..row(
            "encryptionKeys",
            "",
            |options, text| set(&mut options.encryption_keys, parse_pairs(text)),
            "the PEM files of private keys by their ids, as JSON, for segments that Aiven's plugin has encrypted: \
             {\"key1\": \"/keys/key1.pem\"}; every machine must have the files",
        )
    },
    row(
        "remote",
        "",
        |options, text| set(&mut options.remote, location(text).map(Some)),
        "the location of the earlier segments of these logs in tiered storage or in a backup; each offset is read once: \
         from path if it is there, else from here; the options storage.<name> are those of the URLs",
    ),
    row(
        "remoteLogMetadata",
        "",
        |options, text| set(&mut options.remote_log_metadata, location(text).map(Some)),
        "the log directory with the topic __remote_log_metadata, a partition directory or a .log file of it: only \
         segments that it has as finished are read; default with remote: the partitions in the log directory, if any",
    ),
    row(
        "subscribe",
        "",
        |options, text| {
            options.subscription = Subscription::Topics(parse_topics(text)?);
            Ok(())
        },
        "the topics to read, separated by commas; default: all",
    ),
    row(
        "subscribePattern",
        "",
        |options, text| {
            options.subscription = Subscription::Pattern(TopicPattern::parse(text)?);
            Ok(())
        },
        "a regular expression; reads the topics whose names contain a match",
    ),
    row(
        "assign",
        "",
        |options, text| {
            options.subscription = Subscription::Partitions(parse_assign(text)?);
            Ok(())
        },
        "the partitions to read, as JSON: {\"orders\": [0, 1]}",
    ),
    row(
        "startingOffsets",
        "",
        |options, text| set(&mut options.starting_offsets, parse_offsets(text).map(Some)),
        "where to start: earliest (the default of a batch read), latest (the default of a stream, and only for \
         streams) or JSON by partition",
    ),
    row(
        "endingOffsets",
        "",
        |options, text| set(&mut options.ending_offsets, parse_offsets(text).map(Some)),
        "where a batch read ends: latest (the default) or JSON by partition",
    ),
    row(
        "startingTimestamp",
        "",
        |options, text| set(&mut options.starting_timestamp, parse_timestamp(text).map(Some)),
        "batch reads: only records with this timestamp or a later one; streams: start at the first such record; \
         milliseconds since 1970, or text with a zone like 2026-11-22T00:00:00Z",
    ),
    row(
        "endingTimestamp",
        "",
        |options, text| set(&mut options.ending_timestamp, parse_timestamp(text).map(Some)),
        "batch reads: only records with an earlier timestamp than this; same forms as startingTimestamp",
    ),
    row(
        "startingOffsetsByTimestamp",
        "",
        |options, text| set(&mut options.starting_timestamps, parse_timestamps(text).map(Some)),
        "start each partition at the offset of its first record with this timestamp or a later one, as JSON",
    ),
    row(
        "endingOffsetsByTimestamp",
        "",
        |options, text| set(&mut options.ending_timestamps, parse_timestamps(text).map(Some)),
        "end each partition before the offset of its first record with this timestamp or a later one, as JSON",
    ),
    row(
        "startingOffsetsByTimestampStrategy",
        "",
        |options, text| {
            let strategy = match one_of(&["error", "latest"], text)? {
                "latest" => TimestampStrategy::Latest,
                _ => TimestampStrategy::Error,
            };
            options.timestamp_strategy = Some(strategy);
            Ok(())
        },
        "for a partition without a record since its starting time: error raises an error, latest begins at its end, \
         so that a batch read has no rows of it; default: latest for startingTimestamp of a batch read, else error",
    ),
    row(
        "failOnDataLoss",
        "true",
        |options, text| set(&mut options.fail_on_data_loss, parse_bool(text)),
        "true raises an error if requested offsets no longer exist, false reads the existing ones",
    ),
    row(
        "replicas",
        "error",
        |options, text| {
            options.replicas = match one_of(&["error", "longest"], text)? {
                "longest" => Replicas::Longest,
                _ => Replicas::Error,
            };
            Ok(())
        },
        "if two directories hold the same partition: error raises an error, longest reads the more complete one",
    ),
    OptionRow {
        alias: Some("kafka.isolation.level"),
        ..row(
            "isolationLevel",
            "read_uncommitted",
            |options, text| {
                options.isolation = match one_of(&["read_uncommitted", "read_committed"], text)? {
                    "read_committed" => Isolation::ReadCommitted,
                    _ => Isolation::ReadUncommitted,
                };
                Ok(())
            },
            "read_uncommitted: all records; read_committed: no records of aborted or open transactions; the same as \
             kafka.isolation.level",
        )
    },
    row(
        "minPartitions",
        "",
        |options, text| set(&mut options.min_partitions, parse_positive_count(text).map(Some)),
        "the approximate minimum number of tasks",
    ),
    row(
        "maxRecordsPerPartition",
        "",
        |options, text| {
            set(
                &mut options.max_records_per_partition,
                parse_positive_count(text).and_then(|count| narrowed(count, "2^63 - 1")).map(Some),
            )
        },
        "the largest number of offsets that one task reads",
    ),
    row(
        "maxPartitionBytes",
        "384m",
        |options, text| set(&mut options.max_partition_bytes, parse_positive_len(text)),
        "the approximate bytes that one task reads: larger segments are split between batches, small ones are combined",
    ),
    row(
        "maxOffsetsPerTrigger",
        "",
        |options, text| set(&mut options.max_offsets_per_trigger, parse_positive_count(text).map(Some)),
        "the largest number of offsets in one micro-batch of a stream; each partition with new ones has at least one",
    ),
    row(
        "minOffsetsPerTrigger",
        "",
        |options, text| set(&mut options.min_offsets_per_trigger, parse_positive_count(text).map(Some)),
        "a micro-batch of a stream waits until there are this many new offsets",
    ),
    row(
        "maxTriggerDelay",
        "15m",
        |options, text| set(&mut options.max_trigger_delay, parse_duration(text)),
        "the longest wait for minOffsetsPerTrigger, like 15m",
    ),
    row(
        "view",
        "records",
        |options, text| {
            let word = text.trim().to_lowercase();
            options.view = word.parse().map_err(|error: Error| error.to_string())?;
            Ok(())
        },
        "records; batches: one row per batch, from its header; segments: one row per segment file; internal: one row per \
         record of an internal topic, with key and value as JSON",
    ),
    row(
        "columns",
        "",
        |options, text| set(&mut options.columns, parse_names(text)),
        "the columns to read, separated by commas; the others are not decoded",
    ),
    row(
        "includeHeaders",
        "false",
        |options, text| set(&mut options.include_headers, parse_bool(text)),
        "adds the column headers",
    ),
    row(
        "includeControl",
        "false",
        |options, text| set(&mut options.include_control, parse_bool(text)),
        "includes transaction markers and KRaft control records",
    ),
    row(
        "checkCrc",
        "true",
        |options, text| set(&mut options.check_crc, parse_bool(text)),
        "verifies checksums; view=batches has the column crcOk instead",
    ),
    row(
        "onCorrupt",
        "fail",
        |options, text| {
            options.on_corrupt = match one_of(&["fail", "skip", "report"], text)? {
                "skip" => OnCorrupt::Skip,
                "report" => OnCorrupt::Report,
                _ => OnCorrupt::Fail,
            };
            Ok(())
        },
        "a corrupt batch: fail ends the job, skip omits the batch, report omits it and adds a row with column error",
    ),
    row(
        "leavePageCache",
        "false",
        |options, text| set(&mut options.leave_page_cache, parse_bool(text)),
        "drops the pages that a read brings into the page cache, for machines that run a broker",
    ),
    row(
        "metricsPath",
        "",
        |options, text| set(&mut options.metrics_path, parse_directory(text).map(Some)),
        "a directory into which each task writes its counts; kbat.spark.metrics adds them up",
    ),
    row(
        "topic",
        "",
        |options, text| set(&mut options.topic, parse_text(text).map(Some)),
        "sets the topic of files outside a <topic>-<partition> directory; to read one topic, use subscribe",
    ),
    row(
        "partition",
        "",
        |options, text| {
            set(&mut options.partition, parse_count(text).and_then(|count| narrowed(count, "2147483647")).map(Some))
        },
        "sets the partition of files outside a <topic>-<partition> directory; to read one partition, use assign",
    ),
    row(
        "maxBatchLen",
        "",
        |options, text| set(&mut options.limits.batch_len, length(text)),
        "the maximum bytes of one batch",
    ),
    row(
        "maxDecompressedLen",
        "",
        |options, text| set(&mut options.limits.decompressed_len, length(text)),
        "the maximum bytes of one batch's records after decompression",
    ),
    row(
        "maxRatio",
        "",
        |options, text| set(&mut options.limits.ratio, count(text)),
        "how many times larger decompressed records may be, beyond ratioFreeLen",
    ),
    row(
        "ratioFreeLen",
        "",
        |options, text| set(&mut options.limits.ratio_free_len, length(text)),
        "maxRatio does not apply up to this many decompressed bytes",
    ),
    row(
        "maxRecordCount",
        "",
        |options, text| set(&mut options.limits.record_count, count(text)),
        "the maximum records of one batch",
    ),
    row(
        "maxHeaderCount",
        "",
        |options, text| set(&mut options.limits.header_count, count(text)),
        "the maximum headers of one record",
    ),
    row(
        "engine",
        "auto",
        |_, text| one_of(&["auto", "jvm", "python"], text).map(drop),
        "which implementation reads: jvm needs kbat's jar in the session, python a Python with kbat on all machines; \
         auto is jvm if the jar is there",
    ),
];

/// The options that set a field of [`Limits`](crate::Limits).
pub(crate) const LIMIT_OPTIONS: [&str; 6] =
    ["maxBatchLen", "maxDecompressedLen", "maxRatio", "ratioFreeLen", "maxRecordCount", "maxHeaderCount"];

/// Options of Spark's Kafka source that concern its connection only.
const CONNECTION_OPTIONS: [&str; 4] =
    ["groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"];

/// Options that Spark's Kafka source refuses too, and why.
const REFUSED: [(&str, &str); 5] = [
    ("kafka.auto.offset.reset", "set startingOffsets=earliest or latest"),
    ("kafka.key.deserializer", "keys are bytes; convert the column: CAST(key AS STRING)"),
    ("kafka.value.deserializer", "values are bytes; convert the column: CAST(value AS STRING)"),
    ("kafka.enable.auto.commit", "nothing is committed to Kafka"),
    ("kafka.interceptor.classes", "there is no consumer; change the rows with Spark"),
];

/// Options that only a write has, in lower case.
const OF_WRITES: [&str; 7] =
    ["numpartitions", "compression", "level", "batchsize", "segmentbytes", "leaderepoch", "partitionmetadata"];

/// Arguments of `kbat.scan`, and the options that they correspond to.
const OF_SCANS: [(&str, &str); 5] = [
    ("topics", "subscribe"),
    ("partitions", "assign"),
    ("storage_options", "storage.<name>"),
    ("encryption_keys", "encryptionKeys"),
    ("remote_log_metadata", "remoteLogMetadata"),
];

const STORAGE: &str = "storage.";
const EXCLUSIVE: [&str; 3] = ["subscribe", "subscribePattern", "assign"];

/// Parses options, whatever the case of their names.
pub(super) fn parse(given: &[(String, String)]) -> Result<ReadOptions> {
    let mut parser = OptionParser::new(OptionTable { rows: ROWS, synonyms: &OF_SCANS });
    for (name, text) in given {
        let lower = name.to_lowercase();
        if let Some((_, instead)) = REFUSED.iter().find(|(refused, _)| *refused == lower) {
            return Err(Error::argument(format!(
                "kbat: option {name} is not supported, as in Spark's Kafka source; {instead}"
            )));
        }
        if OF_WRITES.contains(&lower.as_str()) {
            parser.options.of_writes.push(name.clone());
            continue;
        }
        if let Some(ignored) = connection_option(name, &lower) {
            parser.options.ignored.push(ignored);
            continue;
        }
        if parser.set(name, text)?.is_family() {
            let member = lower.strip_prefix(STORAGE).unwrap_or(&lower).to_owned();
            let storage = &mut parser.options.storage;
            if storage.iter().any(|(known, other)| *known == member && other != text) {
                return Err(Error::argument(format!(
                    "kbat: options {lower} and {name} conflict: set only one of them"
                )));
            }
            storage.push((member, text.clone()));
        }
    }
    let strategies: Vec<&str> = EXCLUSIVE.into_iter().filter(|name| parser.has(name)).collect();
    if strategies.len() > 1 {
        return Err(Error::argument(format!(
            "kbat: options {} exclude each other: use one of subscribe, subscribePattern, assign",
            strategies.join(" and ")
        )));
    }
    Ok(parser.options)
}

/// The name to show of an option that only concerns a broker's connection.
fn connection_option(name: &str, lower: &str) -> Option<String> {
    let known = CONNECTION_OPTIONS.iter().find(|known| known.to_lowercase() == lower);
    let is_of_client = lower.starts_with("kafka.") && lower != "kafka.isolation.level";
    known.map(|known| (*known).to_owned()).or_else(|| is_of_client.then(|| name.to_owned()))
}

//! Rows, columns and options that a write refuses.

use super::*;

#[test]
fn rows_that_belong_nowhere_are_refused() {
    let target = TargetDirectory::new("nowhere");
    let job = job(&target.0);
    let refused = |topic: Option<&str>, partition: Option<i32>| {
        let columns: [(&str, ArrayRef); 3] = [
            ("topic", Arc::new(StringArray::from(vec![topic]))),
            ("partition", Arc::new(Int32Array::from(vec![partition]))),
            ("value", Arc::new(StringArray::from(vec!["v"]))),
        ];
        let mut writer = TaskWriter::new(&job, 0, 0).unwrap();
        writer.write(&RecordBatch::try_from_iter(columns).unwrap()).unwrap_err().to_string()
    };
    assert!(refused(None, Some(0)).contains("a row has no topic"));
    let error = refused(Some("a"), Some(-1));
    assert!(error.contains("-1 is not a valid partition of topic a: partitions are 0 to 2147483647"), "{error}");
    assert!(refused(Some("a"), None).contains("rows of topic a have no partition"));
    for topic in ["../../evil", "..", "", "café", &"a".repeat(250)] {
        assert!(refused(Some(topic), Some(0)).contains("which is not a valid topic name"), "{topic}");
    }
}

#[test]
fn errors_of_records_name_their_partition() {
    let target = TargetDirectory::new("negative");
    let columns: [(&str, ArrayRef); 4] = [
        ("topic", Arc::new(StringArray::from(vec!["a"; 2]))),
        ("partition", Arc::new(Int32Array::from(vec![3; 2]))),
        ("value", Arc::new(StringArray::from(vec!["v"; 2]))),
        ("timestamp", Arc::new(Int64Array::from(vec![0, -5]))),
    ];
    let mut writer = TaskWriter::new(&job(&target.0), 0, 0).unwrap();
    writer.write(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
    let error = writer.finish().unwrap_err().to_string();
    assert!(error.starts_with("kbat: rows of a-3: row 1: "), "{error}");
}

/// Rows are counted from the first one of the task, however many are encoded together.
#[test]
fn errors_of_records_count_all_rows_of_their_partition() {
    let target = TargetDirectory::new("row-numbers");
    let rows = |timestamp: i64| {
        let columns: [(&str, ArrayRef); 4] = [
            ("topic", Arc::new(StringArray::from(vec!["a"; 3]))),
            ("partition", Arc::new(Int32Array::from(vec![3; 3]))),
            ("value", Arc::new(StringArray::from(vec!["v".repeat(1 << 20); 3]))),
            ("timestamp", Arc::new(Int64Array::from(vec![0, 0, timestamp]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let mut writer = TaskWriter::new(&job(&target.0), 0, 0).unwrap();
    writer.write(&rows(0)).unwrap();
    let error = writer.write(&rows(-5)).unwrap_err().to_string();
    assert!(error.starts_with("kbat: rows of a-3: row 5: "), "{error}");
}

#[test]
fn options_and_columns_are_checked() {
    let refused = |options: &[(&str, &str)], columns: &[(&str, &str)]| {
        let mut given = pairs(options);
        given.push(("PATH".to_owned(), "/a".to_owned()));
        WriteJob::check(&given, &pairs(columns)).unwrap_err().to_string()
    };
    let rows = [("topic", "string"), ("value", "binary")];
    for (name, text, message) in [
        ("topic", "../t", "option topic='../t': must be 1 to 249 ASCII letters"),
        ("compress", "zstd", "unknown option compress (Spark lower-cased it); did you mean compression?"),
        ("compression", "zip", "gzip, snappy, lz4 or zstd"),
        ("segmentBytes", "0", "must be at least 1 byte"),
        ("segmentBytes", "2147483648", "option segmentBytes='2147483648': must be at most 2147483647"),
        ("leaderEpoch", "2147483648", "must be at most 2147483647"),
        ("numPartitions", "0", "must be a whole number, 1 or more"),
        ("level", "high", "must be a whole number"),
        ("engine", "rust", "must be auto, jvm or python"),
    ] {
        assert!(refused(&[(name, text)], &rows).contains(message), "{name}: {}", refused(&[(name, text)], &rows));
    }
    let levels = refused(&[("compression", "gzip"), ("level", "99")], &rows);
    assert_eq!(levels, "kbat: gzip compression has levels 1 to 9, not 99");
    let conflict = [("kafka.compression.type", "lz4"), ("compression", "zstd")];
    for order in [[0, 1], [1, 0]] {
        let message = refused(&order.map(|place| conflict[place]), &rows);
        assert_eq!(message, "kbat: options compression and kafka.compression.type conflict: set only one of them");
    }
    let wrong: &[(&[(&str, &str)], &str)] = &[
        (&[("value", "int"), ("topic", "string")], "column value has type int, but must be binary or string"),
        (&[("value", "string")], "there is no column topic; add one, or set the option topic"),
        (&[("topic", "string"), ("key", "string")], "there is no column value"),
        (&[("value", "string"), ("offsets", "bigint")], "column offsets can't be written; choose among topic"),
        (&[("value", "string"), ("headers", "string")], "but must be array<struct<key:string,value:binary>>"),
        (&[("value", "string"), ("headers", "array<int>")], "but must be array<struct<key:string,value:binary>>"),
        (
            &[("value", "string"), ("headers", "array<struct<key:int,value:binary>>")],
            "but must be array<struct<key:string,value:binary>>",
        ),
        (
            &[("value", "string"), ("headers", "array<struct<key:string>>")],
            "but must be array<struct<key:string,value:binary>>",
        ),
    ];
    for (columns, message) in wrong {
        assert!(refused(&[], columns).contains(message), "{message}");
    }
    let check = |given: &[(&str, &str)]| WriteJob::check(&pairs(given), &pairs(&rows));
    let given =
        [("path", "/a"), ("kafka.acks", "all"), ("KAFKA.compression.type", "lz4"), ("checkpointLocation", "/c")];
    let warning = check(&given).unwrap();
    assert_eq!(warning.unwrap(), "kbat: these options have no effect, because there is no broker: kafka.acks");
    assert!(check(&[]).unwrap_err().to_string().contains("no path"));
    assert!(check(&[("path", "s3://b/x")]).unwrap_err().to_string().contains("only written to a file system"));
}

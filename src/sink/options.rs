//! [`WriteOptions`]: the options of a write, and the columns of its rows.

use std::num::NonZeroU32;

use crate::arrow::EncodeOptions;
use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::objects::store_scheme;
use crate::plan::paths::local_path;
use crate::plan::values::{
    Parsed, one_of, parse_bool, parse_count, parse_number, parse_positive_count, parse_positive_len, parse_text,
};
use crate::plan::{OptionParser, OptionRow, OptionTable, narrowed, option_rows, row, set, warning_of_ignored};
use crate::store::names::is_topic;

/// The options of one write.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteOptions {
    /// The directory for the partition directories, as the user wrote it.
    pub(super) path: Option<String>,
    pub(super) topic: Option<String>,
    pub(super) num_partitions: Option<NonZeroU32>,
    pub(super) compression: Compression,
    pub(super) level: Option<i32>,
    pub(super) batch_size: usize,
    pub(super) segment_bytes: u64,
    pub(super) leader_epoch: Option<i32>,
    pub(super) has_metadata: bool,
    /// Options that have no effect because they concern a broker.
    pub(super) ignored: Vec<String>,
    /// Options that have no effect because they concern reads, such as those that a session sets for all reads.
    pub(super) of_reads: Vec<String>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            path: None,
            topic: None,
            num_partitions: None,
            compression: Compression::None,
            level: None,
            batch_size: 128 << 10,
            segment_bytes: 1 << 30,
            leader_epoch: None,
            has_metadata: false,
            ignored: Vec::new(),
            of_reads: Vec::new(),
        }
    }
}

/// A number that fits Kafka's 32 bits with a sign.
fn int32(number: Parsed<u64>) -> Parsed<i32> {
    narrowed(number?, "2147483647")
}

fn parse_topic(text: &str) -> Parsed<String> {
    if is_topic(text) { Ok(text.to_owned()) } else { Err(TOPIC_FORM.to_owned()) }
}

const TOPIC_FORM: &str = "must be 1 to 249 ASCII letters and digits, '.', '_' and '-', and neither '.' nor '..'";

/// Refuses a topic that could leave the directory of a write, or that no broker accepts.
pub(super) fn check_topic(name: &str) -> Result<()> {
    parse_topic(name).map(drop).map_err(|reason| {
        Error::argument(format!("kbat: a row has topic '{name}', which is not a valid topic name: it {reason}"))
    })
}

/// All options of a write, in the order of the documentation.
#[must_use]
pub fn write_option_rows() -> &'static [OptionRow<WriteOptions>] {
    ROWS
}

static ROWS: &[OptionRow<WriteOptions>] = &[
    row(
        "path",
        "",
        |options, text| set(&mut options.path, parse_text(text).map(Some)),
        "the directory for the partition directories",
    ),
    row(
        "topic",
        "",
        |options, text| set(&mut options.topic, parse_topic(text).map(Some)),
        "the topic of all rows, instead of the column topic",
    ),
    row(
        "numPartitions",
        "",
        |options, text| {
            let count = int32(parse_positive_count(text))?;
            options.num_partitions = NonZeroU32::new(count.unsigned_abs());
            Ok(())
        },
        "the number of partitions of each topic: missing ones are created. Default: the existing ones, so a new topic needs \
             it if the rows have no column partition",
    ),
    OptionRow {
        alias: Some("kafka.compression.type"),
        ..row(
            "compression",
            "none",
            |options, text| {
                let name = one_of(&Compression::ALL.map(Compression::name), text)?;
                set(&mut options.compression, name.parse().map_err(|error: Error| error.to_string()))
            },
            "the codec of the batches",
        )
    },
    row(
        "level",
        "",
        |options, text| set(&mut options.level, parse_number(text).map(Some)),
        "the codec's level, with Kafka's numbers",
    ),
    OptionRow {
        alias: Some("kafka.batch.size"),
        ..row(
            "batchSize",
            "131072",
            |options, text| {
                let len = parse_positive_len(text)?;
                set(&mut options.batch_size, narrowed(len, "the address space of this machine"))
            },
            "the size of a batch before compression, in bytes",
        )
    },
    row(
        "segmentBytes",
        "1073741824",
        |options, text| {
            options.segment_bytes = u64::from(int32(parse_positive_len(text))?.unsigned_abs());
            Ok(())
        },
        "the largest size of a segment",
    ),
    row(
        "leaderEpoch",
        "",
        |options, text| set(&mut options.leader_epoch, int32(parse_count(text)).map(Some)),
        "the leader epoch of the batches",
    ),
    row(
        "partitionMetadata",
        "false",
        |options, text| set(&mut options.has_metadata, parse_bool(text)),
        "writes a partition.metadata into new partitions",
    ),
    row(
        "engine",
        "auto",
        |_, text| one_of(&["auto", "jvm", "python"], text).map(drop),
        "which implementation writes, as in a read",
    ),
];

/// Options that Spark's streaming queries add, and that it handles itself.
const OF_STREAMS: [&str; 2] = ["checkpointlocation", "queryname"];

/// Options of Kafka's producer that have an effect.
const OF_PRODUCERS: [&str; 2] = ["kafka.compression.type", "kafka.batch.size"];

impl WriteOptions {
    /// Parses options, whatever the case of their names.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) that names the option and its possible values;
    /// no path, or one that is not in a file system.
    pub fn parse(given: &[(String, String)]) -> Result<Self> {
        // before the options of the store, which writes do not have
        if let Some((_, path)) = given.iter().find(|(name, _)| name.eq_ignore_ascii_case("path")) {
            refuse_store(path)?;
        }
        let mut parser = OptionParser::new(OptionTable { rows: ROWS, synonyms: &[] });
        for (name, text) in given {
            let lower = name.to_lowercase();
            if lower.starts_with("kafka.") && !OF_PRODUCERS.contains(&lower.as_str()) {
                parser.options.ignored.push(name.clone());
            } else if is_of_reads(&lower) {
                parser.options.of_reads.push(name.clone());
            } else if !OF_STREAMS.contains(&lower.as_str()) {
                parser.set(name, text)?;
            }
        }
        let options = parser.options;
        options.encoding(0, 0).validate().map_err(|error| Error::argument(format!("kbat: {error}")))?;
        options.directory()?;
        Ok(options)
    }

    /// The absolute path of the directory for the partition directories.
    ///
    /// # Errors
    /// No path, or one that is not in a file system.
    pub fn directory(&self) -> Result<String> {
        let Some(path) = &self.path else {
            return Err(Error::argument(
                "kbat: no path; write .save(\"/path/to/directory\"), or .start(\"/path/to/directory\") for a stream; in \
                 SQL, INSERT INTO a temporary view USING kbat with this path, because a table does not pass its path",
            ));
        };
        refuse_store(path)?;
        local_path(path)
    }

    /// A warning about the ignored options, for all of them.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        warning_of_ignored(&self.ignored, &self.of_reads, " on a write, only on reads")
    }

    /// How to encode rows from an offset on; `now` is the timestamp of rows without one, in milliseconds since the
    /// epoch.
    pub(super) fn encoding(&self, base_offset: i64, now: i64) -> EncodeOptions {
        EncodeOptions {
            compression: self.compression,
            level: self.level,
            batch_bytes: self.batch_size,
            base_offset: Some(base_offset),
            timestamp: Some(now),
            partition_leader_epoch: 0,
            ..EncodeOptions::default()
        }
    }
}

/// Whether a read has an option, and a write has none of this name.
fn is_of_reads(lower: &str) -> bool {
    option_rows().iter().any(|row| row.is_named(lower)) && !ROWS.iter().any(|row| row.is_named(lower))
}

/// Refuses the URL of an object.
fn refuse_store(path: &str) -> Result<()> {
    if store_scheme(path).is_some() {
        return Err(Error::argument(format!(
            "kbat: {path} is in a store, and rows are only written to a file system: save there, then upload it"
        )));
    }
    Ok(())
}

/// Columns that can be written, their types in SQL, and the types for messages.
static COLUMNS: [(&str, &[&str], &str); 6] = [
    ("topic", &["string"], "string"),
    ("partition", &["int", "smallint", "bigint"], "int or smallint or bigint"),
    ("key", &["binary", "string"], "binary or string"),
    ("value", &["binary", "string"], "binary or string"),
    ("headers", &["array"], "array<struct<key:string,value:binary>>"),
    ("timestamp", &["timestamp", "bigint"], "timestamp or bigint"),
];

/// Columns of the source that a write ignores, as Spark's Kafka sink does, so that rows can be written as they were
/// read.
const IGNORED_COLUMNS: [&str; 2] = ["offset", "timestampType"];

/// The name of a type, without a collation or the types of elements after it.
fn base_of(data_type: &str) -> &str {
    data_type.split(['<', ' ']).next().unwrap_or_default()
}

/// Whether headers can have this type. The fields of a header may have any names.
fn are_headers(data_type: &str) -> bool {
    let is_bytes = |field: &str| {
        let (_, field_type) = field.rsplit_once(':').unwrap_or_default();
        ["binary", "string", "void"].contains(&base_of(field_type))
    };
    let Some(element) = data_type.strip_prefix("array<").and_then(|rest| rest.strip_suffix('>')) else { return false };
    let fields = element.strip_prefix("struct<").and_then(|rest| rest.strip_suffix('>'));
    element == "void" || fields.is_some_and(|fields| fields.split(',').count() == 2 && fields.split(',').all(is_bytes))
}

/// Checks the columns of the rows: name and type in SQL of each.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a column that can't be written, and for a
/// missing one.
pub(super) fn check_columns(columns: &[(String, String)], options: &WriteOptions) -> Result<()> {
    for (name, data_type) in columns {
        if IGNORED_COLUMNS.contains(&name.as_str()) {
            continue;
        }
        let Some((_, types, shown)) = COLUMNS.iter().find(|(known, ..)| known == name) else {
            let names: Vec<&str> = COLUMNS.iter().map(|(name, ..)| *name).collect();
            return Err(Error::argument(format!(
                "kbat: column {name} can't be written; choose among {}",
                names.join(", ")
            )));
        };
        let is_right = if name == "headers" { are_headers(data_type) } else { types.contains(&base_of(data_type)) };
        if !is_right {
            return Err(Error::argument(format!("kbat: column {name} has type {data_type}, but must be {shown}")));
        }
    }
    let has = |name: &str| columns.iter().any(|(column, _)| column == name);
    if !has("value") {
        return Err(Error::argument("kbat: there is no column value; add one"));
    }
    if !has("topic") && options.topic.is_none() {
        return Err(Error::argument("kbat: there is no column topic; add one, or set the option topic"));
    }
    Ok(())
}

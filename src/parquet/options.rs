//! Options of the Parquet writer.

use std::str::FromStr;

use arrow_schema::{DataType, Schema};
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::error::{Error, Result};
use crate::parquet::keys::PartitionBy;

/// Columns with repeated values: a dictionary of them is smaller than the values.
const REPEATING: [&str; 12] = [
    "topic",
    "partition",
    "timestamp_type",
    "timestampType",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "is_transactional",
    "compression",
    "magic",
    "segment",
    "batch_size",
];

/// Bytes of a page before compression. With Parquet's default, 1 MiB, more data is fetched from memory twice.
const PAGE_LEN: usize = 512 << 10;

/// The codec of Parquet's pages, independent of the codec of Kafka's batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ParquetCompression {
    /// Not compressed.
    None,
    /// Snappy, the default of Spark.
    #[default]
    Snappy,
    /// gzip at a level from 0 to 9.
    Gzip(u32),
    /// LZ4 without a frame (`LZ4_RAW`).
    Lz4,
    /// zstd at a level from 1 to 22.
    Zstd(i32),
}

impl FromStr for ParquetCompression {
    type Err = Error;

    /// `none`, `snappy`, `lz4`, `gzip`, `zstd`; the last two also with a level: `zstd:3`.
    fn from_str(text: &str) -> Result<Self> {
        let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level)));
        let number = |default: i32| level.map_or(Ok(default), str::parse);
        let parsed = match (name, level) {
            ("none" | "uncompressed", None) => Some(Self::None),
            ("snappy", None) => Some(Self::Snappy),
            ("lz4", None) => Some(Self::Lz4),
            ("gzip", _) => number(6).ok().and_then(|level| u32::try_from(level).ok()).map(Self::Gzip),
            ("zstd", _) => number(3).ok().map(Self::Zstd),
            _ => None,
        };
        parsed.ok_or_else(|| {
            Error::argument(format!("unknown compression {text:?}: use none, snappy, lz4, gzip[:level], zstd[:level]"))
        })
    }
}

/// Options of the Parquet writer.
#[derive(Debug, Clone)]
pub struct ParquetOptions {
    /// Codec of the pages. Default snappy.
    pub compression: ParquetCompression,
    /// Columns that become directories, outermost first. Default: none, which writes one file.
    pub partition_by: Vec<PartitionBy>,
    /// Names for the written columns, in their order. Default: the names in the schema.
    pub names: Option<Vec<String>>,
    /// Beginning of the files' names in a partitioned directory. Default `part`.
    pub file_stem: String,
    /// Target size of a row group in bytes of encoded data. Default 128 MiB.
    pub row_group_len: usize,
    /// Maximum bytes that all open files together may buffer in memory. Default 256 MiB.
    pub memory_len: usize,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self {
            compression: ParquetCompression::default(),
            partition_by: Vec::new(),
            names: None,
            file_stem: "part".to_owned(),
            row_group_len: 128 << 20,
            memory_len: 256 << 20,
        }
    }
}

impl ParquetOptions {
    /// The schema of the files.
    pub(super) fn renamed(&self, schema: &Schema) -> Result<Schema> {
        let Some(names) = &self.names else { return Ok(schema.clone()) };
        if names.len() != schema.fields().len() {
            let counts = format!("there are {} names for {} columns", names.len(), schema.fields().len());
            return Err(Error::argument(counts));
        }
        for (place, name) in names.iter().enumerate() {
            let is_taken = names.iter().take(place).any(|before| before == name);
            if name.is_empty() || is_taken || self.partition_by.iter().any(|key| key.name() == name) {
                return Err(Error::argument(format!(
                    "the name {name:?} is empty or already used by another column or directory"
                )));
            }
        }
        let fields = schema.fields().iter().zip(names);
        Ok(Schema::new(fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect::<Vec<_>>()))
    }

    /// Checks that file names can begin with the stem.
    pub(super) fn check_stem(&self) -> Result<()> {
        let stem = &self.file_stem;
        if stem.is_empty() || stem.contains(['/', '\\', '\0']) {
            return Err(Error::argument(format!("the file stem {stem:?} can't begin a file's name")));
        }
        Ok(())
    }

    pub(super) fn properties(&self, schema: &Schema) -> Result<WriterProperties> {
        let mut builder = WriterProperties::builder()
            .set_compression(self.codec()?)
            .set_dictionary_enabled(false)
            .set_data_page_size_limit(PAGE_LEN)
            .set_created_by(concat!("kbat ", env!("CARGO_PKG_VERSION")).to_owned());
        for field in schema.fields() {
            let path = ColumnPath::from(field.name().as_str());
            if REPEATING.contains(&field.name().as_str()) {
                builder = builder.set_column_dictionary_enabled(path.clone(), true);
            } else if let Some(encoding) = encoding(field.data_type()) {
                builder = builder.set_column_encoding(path.clone(), encoding);
            }
            if matches!(field.data_type(), DataType::Binary) {
                // the minimum and maximum key or value do not help to find rows
                builder = builder.set_column_statistics_enabled(path, EnabledStatistics::None);
            } else if matches!(field.data_type(), DataType::List(_)) {
                let keys = ["list", "element", "key"].map(str::to_owned);
                let path = ColumnPath::new([vec![field.name().clone()], keys.to_vec()].concat());
                builder = builder.set_column_dictionary_enabled(path, true);
            }
        }
        Ok(builder.build())
    }

    fn codec(&self) -> Result<Compression> {
        Ok(match self.compression {
            ParquetCompression::None => Compression::UNCOMPRESSED,
            ParquetCompression::Snappy => Compression::SNAPPY,
            ParquetCompression::Lz4 => Compression::LZ4_RAW,
            ParquetCompression::Gzip(number) => {
                Compression::GZIP(GzipLevel::try_new(number).map_err(|_| no_level("gzip", "0 to 9"))?)
            }
            ParquetCompression::Zstd(number) => {
                Compression::ZSTD(ZstdLevel::try_new(number).map_err(|_| no_level("zstd", "1 to 22"))?)
            }
        })
    }
}

/// Encodings for values that do not repeat, if the plain one is larger: deltas for offsets and times, separate lengths
/// for keys and values.
fn encoding(data_type: &DataType) -> Option<Encoding> {
    match data_type {
        DataType::Int64 | DataType::Timestamp(..) => Some(Encoding::DELTA_BINARY_PACKED),
        DataType::Binary => Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        _ => None,
    }
}

fn no_level(codec: &str, levels: &str) -> Error {
    Error::argument(format!("{codec} levels in Parquet are {levels}"))
}

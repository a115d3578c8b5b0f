//! Conversion between the message formats.
//!
//! | from → to | what changes | lost ([`Loss`]) |
//! |---|---|---|
//! | v2 → v1, v0 | one message per record, or one compressed set | headers, producer, leader epoch, transactional flag, delete horizon, control batches, the offsets around the records |
//! | v1 → v0 | | timestamps and their type |
//! | v0 → v1, v2 | timestamp −1, `CreateTime` | nothing |
//! | v1 → v2 | a set becomes a batch, gaps between its offsets become offset deltas | nothing |
//!
//! Offsets never change. Conversion to an older format follows `RecordsUtil.downConvert` of Kafka 3.9, the last version
//! that has it. Conversion to a newer format follows `MemoryRecords.buildRetainedRecordsInto` of Kafka 4, whose log
//! cleaner converts v0 and v1 to v2. One rule is kbat's own: a compressed set of v0 or v1 whose offsets span more than
//! 2³¹ − 1 becomes several batches, while Kafka truncates the offset deltas to 32 bits.

use std::fmt;

use crate::compression::{Compression, Scratch};
use crate::error::{Error, ErrorKind, Result};
use crate::format::attributes::TimestampType;
use crate::format::batch::Batch;
use crate::format::builder::BatchBuilder;
use crate::format::frame::batches;
use crate::format::header::{NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP};
use crate::format::record::NewHeader;
use crate::format::record::Record;
use crate::limits::Limits;

/// Information that a conversion omits because the target format cannot store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// Record headers.
    Headers,
    /// Producer id, epoch or sequence.
    Producer,
    /// Partition leader epoch.
    PartitionLeaderEpoch,
    /// That a batch belonged to a transaction: its records become visible whether it was committed or not.
    Transactional,
    /// Whole control batches.
    ControlBatches,
    /// Delete horizon.
    DeleteHorizon,
    /// Timestamps.
    Timestamps,
    /// The timestamp type `LogAppendTime`. Formats without types are converted to `CreateTime`.
    TimestampType,
    /// Offsets that a batch covers before its first and after its last record, as compaction leaves them; batches
    /// without records.
    OffsetRange,
}

impl Loss {
    /// Every loss.
    pub const ALL: [Self; 9] = [
        Self::Headers,
        Self::Producer,
        Self::PartitionLeaderEpoch,
        Self::Transactional,
        Self::ControlBatches,
        Self::DeleteHorizon,
        Self::Timestamps,
        Self::TimestampType,
        Self::OffsetRange,
    ];

    /// A stable name in `snake_case`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Headers => "headers",
            Self::Producer => "producer",
            Self::PartitionLeaderEpoch => "partition_leader_epoch",
            Self::Transactional => "transactional",
            Self::ControlBatches => "control_batches",
            Self::DeleteHorizon => "delete_horizon",
            Self::Timestamps => "timestamps",
            Self::TimestampType => "timestamp_type",
            Self::OffsetRange => "offset_range",
        }
    }

    const fn bit(self) -> u16 {
        match self {
            Self::Headers => 1,
            Self::Producer => 1 << 1,
            Self::PartitionLeaderEpoch => 1 << 2,
            Self::Transactional => 1 << 3,
            Self::ControlBatches => 1 << 4,
            Self::DeleteHorizon => 1 << 5,
            Self::Timestamps => 1 << 6,
            Self::TimestampType => 1 << 7,
            Self::OffsetRange => 1 << 8,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of [`Loss`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Losses(u16);

impl Losses {
    /// Whether nothing was lost.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set contains `loss`.
    #[must_use]
    pub const fn contains(self, loss: Loss) -> bool {
        self.0 & loss.bit() != 0
    }

    /// The losses in the order of [`Loss::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Loss> {
        Loss::ALL.into_iter().filter(move |&loss| self.contains(loss))
    }

    fn add(&mut self, loss: Loss, happened: bool) {
        self.0 |= if happened { loss.bit() } else { 0 };
    }
}

impl std::ops::BitOrAssign for Losses {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Options of a conversion. The default keeps each batch's codec and converts every batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConvertOptions {
    /// Codec to write with; `None` keeps each batch's codec. Control batches are never compressed.
    pub compression: Option<Compression>,
    /// Compression level, numbered as in Kafka; needs [`ConvertOptions::compression`].
    pub level: Option<i32>,
    /// Converts as a broker up to 3.9 did for a consumer that fetches from this offset: copies batches of the target's
    /// magic or a lower one, drops the records of uncompressed batches before this offset, and rejects zstd.
    pub first_offset: Option<i64>,
}

impl ConvertOptions {
    /// Checks the options against each other and the target.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] with the broken rule.
    pub fn validate(&self, magic: u8) -> Result<()> {
        if self.level.is_some() && self.compression.is_none() {
            return Err(Error::argument("a compression level needs a codec: set compression too"));
        }
        if self.first_offset.is_some() && self.compression.is_some() {
            return Err(Error::argument("a conversion for a fetch keeps the codecs: omit compression"));
        }
        let builder = BatchBuilder::new().magic(magic).compression(self.compression.unwrap_or_default());
        self.level.map_or(builder.clone(), |level| builder.level(level)).validate()
    }

    /// Whether the batch needs no conversion.
    fn keeps(&self, batch: &Batch<'_>, magic: u8) -> bool {
        if self.first_offset.is_some() {
            return batch.magic() <= magic;
        }
        let codec_wanted =
            self.compression.is_some_and(|codec| codec.id() != batch.attributes().codec_id() || self.level.is_some());
        let nothing_to_compress = batch.magic() == 2 && (batch.is_control() || batch.record_count() == Some(0));
        batch.magic() == magic && (!codec_wanted || nothing_to_compress)
    }

    /// Whether a record is dropped. As in Kafka, only records of uncompressed batches are.
    fn drops(&self, batch: &Batch<'_>, record: &Record<'_>) -> bool {
        self.first_offset.is_some_and(|first| !batch.attributes().is_compressed() && record.offset() < first)
    }
}

/// Appends every batch of `bytes` to `out`, converted to a magic. Omits an incomplete batch at the end.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// # let mut bytes = Vec::new();
/// let mut builder = kbat::BatchBuilder::new();
/// builder.append_with_headers(1_700_000_000_000, Some(b"key"), Some(b"value"), &[(b"trace", Some(b"7f"))])?;
/// builder.finish_into(&mut bytes)?;
///
/// let mut old = Vec::new();
/// let losses = kbat::broker::convert::convert(&bytes, 1, &kbat::broker::convert::ConvertOptions::default(), &kbat::Limits::default(), &mut old)?;
/// assert_eq!(losses.iter().collect::<Vec<_>>(), [kbat::broker::convert::Loss::Headers]);
/// assert_eq!(kbat::batches(&old).next().unwrap()?.magic(), 1);
/// # Ok(()) }
/// ```
///
/// # Errors
/// The errors of [`batches`] and of [`convert_batch`]. `out` is then unchanged.
pub fn convert(
    bytes: &[u8],
    magic: u8,
    options: &ConvertOptions,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<Losses> {
    options.validate(magic)?;
    let (start, mut scratch, mut losses) = (out.len(), Scratch::new(), Losses::default());
    for batch in batches(bytes).with_limits(limits) {
        match batch.and_then(|batch| convert_batch(&batch, magic, options, &mut scratch, limits, out)) {
            Ok(lost) => losses |= lost,
            Err(error) => {
                out.truncate(start);
                return Err(error);
            }
        }
    }
    Ok(losses)
}

/// Appends a batch to `out`, converted to a magic. Appends nothing if the target format cannot store any of it. A batch
/// that needs no conversion is copied.
///
/// Before a conversion, the checksum of the batch and those of the messages in it are verified, so that a new checksum
/// does not hide old corruption.
///
/// # Errors
/// Options that contradict each other, a wrong checksum, the errors of [`Batch::records`] and of its iterator, zstd if
/// the target is below magic 2 and no other codec is set, and the errors of Kafka's builder: offsets that do not rise,
/// negative timestamps. `out` is then unchanged.
pub fn convert_batch(
    batch: &Batch<'_>,
    magic: u8,
    options: &ConvertOptions,
    scratch: &mut Scratch,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<Losses> {
    options.validate(magic)?;
    let mut losses = Losses::default();
    if magic < 2 && batch.is_control() {
        losses.add(Loss::ControlBatches, true);
        return Ok(losses);
    }
    if let Some(codec) = Compression::from_id(batch.attributes().codec_id())
        && magic < codec.min_magic()
        && options.compression.is_none()
    {
        return Err(codec_error(batch, codec, magic));
    }
    if options.keeps(batch, magic) {
        out.extend_from_slice(batch.bytes());
        return Ok(losses);
    }
    let start = out.len();
    let rebuilt =
        BuilderConversion { batch, magic, options, losses: lost_by_header(batch, magic) }.run(scratch, limits, out);
    rebuilt.inspect_err(|_| out.truncate(start))
}

#[cold]
fn codec_error(batch: &Batch<'_>, compression: Compression, magic: u8) -> Error {
    let kind = ErrorKind::CompressionBelowMagic { compression, magic: magic.cast_signed() };
    Error::new(kind).at(batch.attributes_position()).in_batch(batch.header().stored_base_offset).in_field("attributes")
}

fn lost_by_header(batch: &Batch<'_>, magic: u8) -> Losses {
    let mut losses = Losses::default();
    if magic == 2 {
        return losses;
    }
    let producer = (batch.producer_id(), batch.producer_epoch(), batch.base_sequence());
    losses.add(Loss::Producer, producer != (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE));
    losses.add(Loss::PartitionLeaderEpoch, batch.partition_leader_epoch() != NO_PARTITION_LEADER_EPOCH);
    losses.add(Loss::Transactional, batch.is_transactional());
    losses.add(Loss::DeleteHorizon, batch.delete_horizon_ms().is_some());
    let log_append_time = batch.timestamp_type() == Some(TimestampType::LogAppendTime);
    losses.add(Loss::TimestampType, magic == 0 && log_append_time);
    losses
}

/// The state of a conversion through a builder.
struct BuilderConversion<'a, 'b> {
    batch: &'a Batch<'b>,
    magic: u8,
    options: &'a ConvertOptions,
    losses: Losses,
}

impl BuilderConversion<'_, '_> {
    fn run(mut self, scratch: &mut Scratch, limits: &Limits, out: &mut Vec<u8>) -> Result<Losses> {
        self.batch.verify_crc()?;
        let compression = match self.options.compression {
            Some(compression) => compression,
            None => self.batch.compression()?,
        };
        let mut current: Option<(BatchBuilder, i64)> = None;
        let (mut headers, mut last_offset) = (Vec::new(), None);
        for record in self.batch.records(scratch, limits)? {
            let record = record?;
            record.verify_crc()?;
            if self.options.drops(self.batch, &record) {
                continue;
            }
            let (mut builder, base_offset) = match current.take() {
                Some((builder, base_offset)) if self.in_reach(base_offset, record.offset()) => (builder, base_offset),
                full => {
                    self.finish(full, out)?;
                    let base_offset = self.base_offset(&record, compression)?;
                    (self.builder(compression, base_offset), base_offset)
                }
            };
            self.append(&mut builder, &record, &mut headers)?;
            current = Some((builder, base_offset));
            last_offset = Some(record.offset());
        }
        self.finish(current, out)?;
        let covers_more = self.batch.magic() == 2 && last_offset != Some(self.batch.last_offset());
        self.losses.add(Loss::OffsetRange, self.magic < 2 && covers_more);
        Ok(self.losses)
    }

    /// Only a compressed set of v0 or v1 can exceed an offset delta.
    fn in_reach(&self, base_offset: i64, offset: i64) -> bool {
        self.batch.magic() == 2 || offset.checked_sub(base_offset).is_none_or(|delta| i32::try_from(delta).is_ok())
    }

    /// A conversion from v2 to v2 keeps the offsets that the batch covers; any other begins at its first record.
    fn base_offset(&mut self, first: &Record<'_>, compression: Compression) -> Result<i64> {
        let stored = self.batch.header().stored_base_offset;
        if self.batch.magic() == 2 && self.magic == 2 {
            return Ok(stored);
        }
        if self.magic == 1 && compression != Compression::None && first.offset() < 0 {
            let message = format!("a compressed set of magic 1 cannot store the negative offset {}", first.offset());
            return Err(self.locate(Error::argument(message)));
        }
        self.losses.add(Loss::OffsetRange, self.batch.magic() == 2 && stored != first.offset());
        Ok(first.offset())
    }

    fn builder(&self, compression: Compression, base_offset: i64) -> BatchBuilder {
        let builder = BatchBuilder::like(self.batch, self.magic, compression, base_offset);
        match self.options.level {
            Some(level) => builder.level(level),
            None => builder,
        }
    }

    fn append<'s>(
        &mut self,
        builder: &mut BatchBuilder,
        record: &Record<'s>,
        headers: &mut Vec<NewHeader<'s>>,
    ) -> Result<()> {
        record.headers().read_into(headers)?;
        if self.magic < 2 {
            self.losses.add(Loss::Headers, !headers.is_empty());
            headers.clear();
        }
        self.losses.add(Loss::Timestamps, self.magic == 0 && record.timestamp() != NO_TIMESTAMP);
        builder
            .append_at(record.offset(), record.timestamp(), record.key(), record.value(), headers)
            .map_err(|error| self.locate(error).in_record(record.index()))
    }

    fn finish(&self, full: Option<(BatchBuilder, i64)>, out: &mut Vec<u8>) -> Result<()> {
        match full {
            Some((builder, _)) => builder.finish_into(out).map_err(|error| self.locate(error)),
            None => Ok(()),
        }
    }

    #[cold]
    fn locate(&self, error: Error) -> Error {
        error.at(self.batch.position()).in_batch(self.batch.header().stored_base_offset)
    }
}

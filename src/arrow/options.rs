//! What a scan reads and how.

use arrow_schema::SchemaRef;

use crate::arrow::schema::{Column, TimestampUnit, schema_of, with_error};
use crate::format::attributes::TimestampType;
use crate::format::header::{BatchHeader, NO_TIMESTAMP};
use crate::format::record::Record;
use crate::limits::Limits;
use crate::log::Segment;

/// What a scan does where bytes can't be read as Kafka would read them.
///
/// Under [`OnCorrupt::Skip`] and [`OnCorrupt::Report`] a batch is shown whole or not at all: a wrong checksum, or a fault in any
/// of its records, takes all of them. Reading goes on at the next batch that is certain to be one; errors of the operating
/// system end the pass always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnCorrupt {
    /// The first fault ends the pass with its error, after the batches before it. A cut batch or zeros at the end are none.
    #[default]
    Fail,
    /// Faults are passed over and counted: see [`ScanStats`](crate::arrow::ScanStats).
    Skip,
    /// As `Skip`, and each fault is a row with nothing but where it is and a last column `error`. A cut batch at the end of a
    /// file is one too, of kind `truncated`; so ends a file that a broker writes to.
    Report,
}

/// Which records of transactions a scan gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// All.
    #[default]
    ReadUncommitted,
    /// Those that a consumer with `isolation.level=read_committed` gets: no aborted ones, nothing from the last stable offset on.
    ReadCommitted,
}

/// What to read and how.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "switches that have nothing to do with each other")]
pub struct ScanOptions {
    /// Columns, in this order. Default [`Column::DEFAULT`].
    pub columns: Vec<Column>,
    /// Unit of the timestamp column. Default milliseconds.
    pub timestamp_unit: TimestampUnit,
    /// Whether keys, values and the values of headers are `binary_view`: those of uncompressed batches are not copied, and stay in
    /// what the batches were read into. Default no.
    pub binary_view: bool,
    /// First offset to give.
    pub start_offset: Option<i64>,
    /// First offset not to give any more.
    pub end_offset: Option<i64>,
    /// Smallest timestamp to return, in milliseconds since the epoch. A record without a timestamp is in no time range.
    pub start_timestamp: Option<i64>,
    /// Return records before, but not at, this timestamp.
    pub end_timestamp: Option<i64>,
    /// Value of the timestamp column, in milliseconds, for records without a timestamp (v0, or −1 as stored). Default null.
    pub missing_timestamp: Option<i64>,
    /// Whether control records come too. Default no.
    pub include_control: bool,
    /// Whether checksums are checked. Default yes.
    pub check_crc: bool,
    /// What to do about damage. Default [`OnCorrupt::Fail`].
    pub on_corrupt: OnCorrupt,
    /// Which records of transactions come. Default all.
    pub isolation: Isolation,
    /// Bounds on untrusted input.
    pub limits: Limits,
    /// An Arrow batch has no more rows than this. Default 16,384.
    pub max_rows: usize,
    /// An Arrow batch ends with the Kafka batch that takes its keys, values and headers past this many bytes. Default 1 MiB.
    pub max_bytes: usize,
    /// Whether pages that reading brings into the page cache are dropped again; those that were there stay. Default no.
    pub leave_page_cache: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            columns: Column::DEFAULT.to_vec(),
            timestamp_unit: TimestampUnit::default(),
            binary_view: false,
            start_offset: None,
            end_offset: None,
            start_timestamp: None,
            end_timestamp: None,
            missing_timestamp: None,
            include_control: false,
            check_crc: true,
            on_corrupt: OnCorrupt::default(),
            isolation: Isolation::default(),
            limits: Limits::default(),
            max_rows: 16_384,
            max_bytes: 1 << 20,
            leave_page_cache: false,
        }
    }
}

impl ScanOptions {
    /// A segment to be read as these options say.
    pub(crate) fn open_segment(&self, path: &std::path::Path) -> crate::Result<Segment> {
        Segment::open_with(path, &self.limits).map(|segment| self.as_asked(segment))
    }

    pub(crate) fn as_asked(&self, segment: Segment) -> Segment {
        if self.leave_page_cache { segment.leaving_page_cache() } else { segment }
    }

    /// Schema of the Arrow batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        let schema = schema_of(&self.columns, self.timestamp_unit, self.binary_view);
        if self.on_corrupt == OnCorrupt::Report { with_error(&schema) } else { schema }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            start_offset: self.start_offset,
            end_offset: self.end_offset,
            start_timestamp: self.start_timestamp,
            end_timestamp: self.end_timestamp,
            include_control: self.include_control,
        }
    }
}

/// Which records are asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) start_offset: Option<i64>,
    pub(crate) end_offset: Option<i64>,
    pub(crate) start_timestamp: Option<i64>,
    pub(crate) end_timestamp: Option<i64>,
    include_control: bool,
}

impl Bounds {
    /// Whether there are any, so that each record has to be looked at.
    pub(crate) fn are_any(&self) -> bool {
        let Self { start_offset, end_offset, start_timestamp, end_timestamp, .. } = self;
        [start_offset, end_offset, start_timestamp, end_timestamp].iter().any(|bound| bound.is_some())
    }

    /// Whether only records of a time range are wanted.
    fn has_times(&self) -> bool {
        self.start_timestamp.is_some() || self.end_timestamp.is_some()
    }

    /// Whether a batch has nothing that is asked for, by its header.
    pub(crate) fn pass_over(&self, header: &BatchHeader) -> bool {
        (header.is_control() && !self.include_control)
            || self.start_offset.is_some_and(|start| header.last_offset() < start)
            || self.end_before(header)
            || (header.magic() == 0 && self.has_times())
            || self
                .start_timestamp
                .is_some_and(|start| largest_timestamp(header).is_some_and(|largest| largest < start))
            || self.end_timestamp.is_some_and(|end| least_timestamp(header).is_some_and(|least| least >= end))
    }

    /// Whether a batch begins after what is asked for.
    pub(crate) fn end_before(&self, header: &BatchHeader) -> bool {
        self.end_offset.is_some_and(|end| header.base_offset().is_some_and(|base| base >= end))
    }

    /// Whether a record is asked for.
    pub(crate) fn want(&self, record: &Record<'_>) -> bool {
        let (offset, timestamp) = (record.offset(), record.timestamp());
        self.start_offset.is_none_or(|start| offset >= start)
            && self.end_offset.is_none_or(|end| offset < end)
            && (timestamp != NO_TIMESTAMP || !self.has_times())
            && self.start_timestamp.is_none_or(|start| timestamp >= start)
            && self.end_timestamp.is_none_or(|end| timestamp < end)
    }

    /// Whether a segment has nothing that is asked for, by its base offset and that of the next one.
    pub(crate) fn pass_over_segment(&self, base_offset: Option<i64>, next_base: Option<i64>) -> bool {
        let is_after = self.end_offset.zip(base_offset).is_some_and(|(end, base)| base >= end);
        is_after || self.start_offset.zip(next_base).is_some_and(|(start, next)| next <= start)
    }
}

/// The largest timestamp that a batch's records have, where the header tells it: into the wrapper of a v1 set clients wrote what they
/// liked, 0 and the first record's timestamp among it, and brokers of 0.10.0 kept that.
fn largest_timestamp(header: &BatchHeader) -> Option<i64> {
    let is_told = !header.is_legacy_wrapper()
        || header.magic() == 0
        || header.timestamp_type() == Some(TimestampType::LogAppendTime);
    is_told.then(|| header.max_timestamp())
}

/// The smallest timestamp that a batch's records have, where the header tells it.
fn least_timestamp(header: &BatchHeader) -> Option<i64> {
    let is_one = header.magic() < 2 && !header.is_legacy_wrapper();
    (is_one || header.timestamp_type() == Some(TimestampType::LogAppendTime)).then(|| header.max_timestamp())
}

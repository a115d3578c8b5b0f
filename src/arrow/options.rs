//! [`ScanOptions`]: which records a scan returns, and in which form.

use arrow_schema::SchemaRef;

use crate::arrow::column_table::{Column, ColumnDefinition};
use crate::arrow::schema::{TimestampUnit, schema_of};
use crate::format::attributes::TimestampType;
use crate::format::header::{BatchHeader, NO_TIMESTAMP};
use crate::format::record::Record;
use crate::internal::Family;
use crate::limits::Limits;
use crate::log::Segment;

/// How a scan handles corrupt bytes.
///
/// With [`OnCorrupt::Skip`] and [`OnCorrupt::Report`], a wrong checksum or a single invalid record drops the complete
/// batch. Reading resumes at the next valid batch. Errors of the operating system always end the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnCorrupt {
    /// The first corruption ends the scan with an error, after the batches before it. A truncated batch or zeros at the
    /// end of a log are not corruption.
    #[default]
    Fail,
    /// Corrupt batches are skipped and counted in [`ScanStats`](crate::arrow::ScanStats).
    Skip,
    /// Like `Skip`, but each corruption is also a row. It has the location and an additional last column `error`; all
    /// other columns are null.
    /// A truncated batch at the end of a file is reported with the kind `truncated`; a file that a broker is writing
    /// may end with one.
    Report,
}

/// Which records of transactions a scan returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// All records.
    #[default]
    ReadUncommitted,
    /// The records that a consumer with `isolation.level=read_committed` gets: none of aborted transactions, and none
    /// at or after the last stable offset.
    ReadCommitted,
}

/// How the columns of [`Column::internal`] decode keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Decoder {
    /// By the name of the topic; a `.checkpoint` file as cluster metadata. Topics that are not internal are decoded as
    /// [`Decoder::Json`].
    #[default]
    ByTopic,
    /// As the records of one of Kafka's internal topics.
    Internal(Family),
    /// As JSON: objects and arrays as they are, other text as strings, values in Confluent's wire format as
    /// `{"schemaId": …, "kind": …, "data": …}`, other bytes as `{"base64": …}`.
    Json,
}

/// Which records a scan returns, and in which form.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "the switches are independent of each other")]
pub struct ScanOptions {
    /// Columns to return, in this order. Default [`Column::defaults`].
    pub columns: Vec<Column>,
    /// How to decode the columns of [`Column::internal`]. Default by the name of the topic.
    pub decoder: Decoder,
    /// Unit of the timestamp column. Default milliseconds.
    pub timestamp_unit: TimestampUnit,
    /// Whether keys, values and header values are `binary_view` instead of `binary`. Values of uncompressed batches are
    /// then not copied but refer to the memory that the batches were read into. Default no.
    pub binary_view: bool,
    /// Return records from this offset on.
    pub start_offset: Option<i64>,
    /// Return records before, but not at, this offset.
    pub end_offset: Option<i64>,
    /// Smallest timestamp to return, in milliseconds since the epoch. A record without a timestamp is in no time range.
    pub start_timestamp: Option<i64>,
    /// Return records before, but not at, this timestamp.
    pub end_timestamp: Option<i64>,
    /// Value of the timestamp column, in milliseconds, for records without a timestamp (v0, or −1 as stored). Default
    /// null.
    pub missing_timestamp: Option<i64>,
    /// Whether to return control records. Default no.
    pub include_control: bool,
    /// Whether to verify checksums. Default yes.
    pub check_crc: bool,
    /// How to handle corrupt bytes. Default [`OnCorrupt::Fail`].
    pub on_corrupt: OnCorrupt,
    /// Which records of transactions to return. Default all.
    pub isolation: Isolation,
    /// Bounds on untrusted input.
    pub limits: Limits,
    /// Maximum number of rows of an Arrow batch. Default 16,384.
    pub max_rows: usize,
    /// Target size of an Arrow batch, in bytes of keys, values and headers. An Arrow batch ends after the Kafka batch
    /// that reaches it. Default 1 MiB.
    pub max_bytes: usize,
    /// Whether to drop the pages that the scan brings into the page cache. Pages cached before stay. Default no.
    pub leave_page_cache: bool,
    /// Whether offsets may be computed from batch headers. If no column needs more of the records, and corruption is
    /// an error, a batch of format v2 with as many records as offsets is then neither decompressed nor parsed. Its
    /// checksum is verified, but corruption from before it was computed is not noticed. Default no.
    pub offsets_from_headers: bool,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            columns: Column::defaults(),
            decoder: Decoder::default(),
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
            offsets_from_headers: false,
        }
    }
}

impl ScanOptions {
    /// Opens a segment with these options.
    pub(crate) fn open_segment(&self, path: &crate::io::Location) -> crate::error::Result<Segment> {
        Segment::open_with(path, &self.limits).map(|segment| self.as_asked(segment))
    }

    pub(crate) fn as_asked(&self, segment: Segment) -> Segment {
        if self.leave_page_cache { segment.leaving_page_cache() } else { segment }
    }

    /// Whether no column needs more of the records than their offsets. If corruption is skipped or reported, the rows
    /// must not depend on the columns.
    pub(crate) fn needs_only_headers(&self) -> bool {
        let is_final = self.on_corrupt == OnCorrupt::Fail;
        self.offsets_from_headers && is_final && self.columns.iter().all(|column| column.is_in_header())
    }

    /// Schema of the Arrow batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.schema_of(self.columns.iter().map(|column| column.definition()))
    }

    /// Schema of Arrow batches with some columns.
    pub(crate) fn schema_of(&self, columns: impl Iterator<Item = &'static ColumnDefinition>) -> SchemaRef {
        schema_of(columns, self.timestamp_unit, self.binary_view, self.on_corrupt == OnCorrupt::Report)
    }

    pub(crate) fn bounds(&self) -> RecordBounds {
        RecordBounds {
            start_offset: self.start_offset,
            end_offset: self.end_offset,
            start_timestamp: self.start_timestamp,
            end_timestamp: self.end_timestamp,
            include_control: self.include_control,
            is_segment: true,
        }
    }
}

/// Which records a scan returns, by offset, timestamp and kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordBounds {
    pub(crate) start_offset: Option<i64>,
    pub(crate) end_offset: Option<i64>,
    pub(crate) start_timestamp: Option<i64>,
    pub(crate) end_timestamp: Option<i64>,
    include_control: bool,
    /// Whether the batches are those of a segment, in which a compressed v0 or v1 set has the offset of its last record.
    /// Clients wrote sets with other offsets.
    pub(crate) is_segment: bool,
}

impl RecordBounds {
    /// Whether there are any bounds by offset or timestamp, so that each record must be checked.
    pub(crate) fn are_any(&self) -> bool {
        let Self { start_offset, end_offset, start_timestamp, end_timestamp, .. } = self;
        [start_offset, end_offset, start_timestamp, end_timestamp].iter().any(|bound| bound.is_some())
    }

    /// Whether there are bounds by timestamp.
    pub(crate) fn has_times(&self) -> bool {
        self.start_timestamp.is_some() || self.end_timestamp.is_some()
    }

    /// Whether a batch has no record within the bounds, by its header.
    pub(crate) fn pass_over(&self, header: &BatchHeader) -> bool {
        (header.is_control() && !self.include_control)
            || self
                .start_offset
                .is_some_and(|start| header.last_offset() < start && (self.is_segment || !header.is_legacy_wrapper()))
            || self.end_before(header)
            || (header.magic() == 0 && self.has_times())
            || self
                .start_timestamp
                .is_some_and(|start| largest_timestamp(header).is_some_and(|largest| largest < start))
            || self.end_timestamp.is_some_and(|end| least_timestamp(header).is_some_and(|least| least >= end))
    }

    /// Whether a batch begins at or after the end offset.
    pub(crate) fn end_before(&self, header: &BatchHeader) -> bool {
        self.end_offset.is_some_and(|end| header.base_offset().is_some_and(|base| base >= end))
    }

    /// Whether no offset from the first one up to the second one, if they are known, is within the bounds.
    pub(crate) fn pass_over_offsets(&self, offsets: (Option<i64>, Option<i64>)) -> bool {
        let is_after = self.end_offset.zip(offsets.0).is_some_and(|(end, first)| first >= end);
        is_after || self.start_offset.zip(offsets.1).is_some_and(|(start, next)| next <= start)
    }

    /// Whether a record is within the bounds.
    pub(crate) fn want(&self, record: &Record<'_>) -> bool {
        let (offset, timestamp) = (record.offset(), record.timestamp());
        self.start_offset.is_none_or(|start| offset >= start)
            && self.end_offset.is_none_or(|end| offset < end)
            && (timestamp != NO_TIMESTAMP || !self.has_times())
            && self.start_timestamp.is_none_or(|start| timestamp >= start)
            && self.end_timestamp.is_none_or(|end| timestamp < end)
    }

    /// Whether all records of a batch are within the bounds, by its header.
    pub(crate) fn take_all(&self, header: &BatchHeader) -> bool {
        !self.has_times()
            && self.start_offset.is_none_or(|start| header.base_offset().is_some_and(|base| start <= base))
            && self.end_offset.is_none_or(|end| header.last_offset() < end)
    }

    /// Whether all of a segment is probably read, by its base offset and the base offset of the next segment. Bounds by
    /// timestamp may exclude parts of it.
    pub(crate) fn need_all(&self, base_offset: Option<i64>, next_base: Option<i64>) -> bool {
        let is_after_start = self.start_offset.is_none_or(|start| base_offset.is_some_and(|base| start <= base));
        is_after_start && self.reach_end(next_base) && self.start_timestamp.is_none()
    }

    /// Whether a segment is probably read to its end, by the base offset of the next segment.
    pub(crate) fn reach_end(&self, next_base: Option<i64>) -> bool {
        self.end_offset.zip(next_base).is_none_or(|(end, next)| next <= end)
    }

    /// Whether a segment has no record within the bounds, by its base offset and the base offset of the next segment.
    pub(crate) fn pass_over_segment(&self, base_offset: Option<i64>, next_base: Option<i64>) -> bool {
        let is_after = self.end_offset.zip(base_offset).is_some_and(|(end, base)| base >= end);
        is_after || self.start_offset.zip(next_base).is_some_and(|(start, next)| next <= start)
    }
}

/// The largest timestamp of a batch's records, if its header has it. It is not reliable in the wrapper of a v1 message
/// set with `CreateTime`: some clients wrote 0 or the first record's timestamp, and brokers of version 0.10.0 kept
/// that.
fn largest_timestamp(header: &BatchHeader) -> Option<i64> {
    let is_told = !header.is_legacy_wrapper()
        || header.magic() == 0
        || header.timestamp_type() == Some(TimestampType::LogAppendTime);
    is_told.then(|| header.max_timestamp())
}

/// The smallest timestamp of a batch's records, if its header has it.
fn least_timestamp(header: &BatchHeader) -> Option<i64> {
    let is_one = header.magic() < 2 && !header.is_legacy_wrapper();
    (is_one || header.timestamp_type() == Some(TimestampType::LogAppendTime)).then(|| header.max_timestamp())
}

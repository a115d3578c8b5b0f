//! [`Corruption`]: the position and the reason of the first corruption in a segment.

use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::{BATCH_HEADER_LEN, BatchHeader, LOG_OVERHEAD};
use crate::io::ReadAt;
use crate::log::reader::SegmentReader;
use crate::log::resync::is_crc_right;
use crate::log::tail::SegmentTail;
use crate::num::{u64_of, usize_of};
use crate::repair::output::BatchRefusal;

/// Where and why a segment ends before its file does.
#[derive(Debug)]
pub(crate) struct Corruption {
    pub(crate) position: u64,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Corruption {
    pub(crate) fn new(position: u64, reason: &'static str, message: impl Into<String>) -> Self {
        Self { position, reason, message: message.into() }
    }

    /// Converts an error in a batch.
    pub(crate) fn of_error(error: &Error, position: u64) -> Self {
        Self::new(position, error.kind().name(), error.kind().to_string())
    }

    /// Converts the error of the bytes at a position of `source`.
    ///
    /// # Errors
    /// Returns the error itself if the batch is only too large for the limits and its checksum is correct; I/O errors.
    pub(crate) fn of_error_at(position: u64, error: Error, source: &dyn ReadAt) -> Result<Self> {
        match error.kind() {
            ErrorKind::Limit { .. } if has_right_crc(source, position)? => Err(error),
            _ => Ok(Self::of_error(&error, position)),
        }
    }

    /// Converts the refusal of a batch. Returns `None` if the batch was accepted.
    ///
    /// # Errors
    /// I/O errors of writing.
    pub(crate) fn of_refusal(
        outcome: std::result::Result<(), BatchRefusal>,
        batch: &Batch<'_>,
    ) -> Result<Option<Self>> {
        let (position, last) = (batch.position(), batch.last_offset());
        Ok(Some(match outcome {
            Ok(()) => return Ok(None),
            Err(BatchRefusal::Failed(error)) => return Err(error),
            Err(BatchRefusal::OffsetOrder) => Self::new(
                position,
                "offset_order",
                format!("a batch ends at offset {last}, which is not above that of an earlier index entry"),
            ),
            Err(BatchRefusal::Marker(error)) => Self::new(
                position.saturating_add(u64_of(batch.size())),
                "control_record",
                format!("the transaction marker before this position cannot be decoded: {}", error.kind()),
            ),
            Err(BatchRefusal::Overflow | BatchRefusal::BelowBase) => Self::new(
                position,
                "offset_overflow",
                format!("a batch ends at offset {last}, which is outside the range of the segment's indexes"),
            ),
        }))
    }

    /// Adds to the message of an incomplete batch that a complete one follows its start.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn with_hidden_batch(mut self, source: &dyn ReadAt) -> Result<Self> {
        if self.reason == "partial_batch"
            && let Some(batch) = SegmentTail::any_batch(source, self.position)?
        {
            self.message = format!("{}; a complete batch at byte {batch} may be part of its value", self.message);
        }
        Ok(self)
    }

    /// Describes the bytes after the last batch that a reader returned. Returns `None` if there are none.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn of_tail(reader: &SegmentReader) -> Result<Option<Self>> {
        let position = reader.position();
        Ok(match reader.tail()? {
            SegmentTail::Clean => None,
            SegmentTail::Zeros => {
                Some(Self::new(position, "zero_tail", "zeros up to the end, as in a preallocated file"))
            }
            _ => Some(Self::new(position, "partial_batch", "the file ends inside a batch")),
        })
    }
}

/// Whether the batch at a position has the checksum in its header.
fn has_right_crc(source: &dyn ReadAt, position: u64) -> Result<bool> {
    let mut head = [0; BATCH_HEADER_LEN];
    source.read_bytes_at(&mut head, position)?;
    let [.., l0, l1, l2, l3] = *head.first_chunk::<LOG_OVERHEAD>().unwrap_or(&[0; LOG_OVERHEAD]);
    let size = usize_of(u32::from_be_bytes([l0, l1, l2, l3])).saturating_add(LOG_OVERHEAD);
    let header = BatchHeader::parse(&head, position, size)?;
    is_crc_right(source, &header)
}

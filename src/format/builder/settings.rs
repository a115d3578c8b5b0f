//! The settings of a builder, and Kafka's rules for them.

use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::format::attributes::TimestampType;
use crate::format::builder::BatchBuilder;
use crate::format::header::{NO_PRODUCER_EPOCH, NO_PRODUCER_ID};

/// The settings. They are checked together by [`BatchBuilder::validate`], by the first append and at the end.
impl BatchBuilder {
    /// The default settings: magic 2, no compression, base offset 0, `CreateTime`, no producer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Message format: 0, 1 or 2.
    #[must_use]
    pub fn magic(mut self, magic: u8) -> Self {
        self.magic = magic;
        self
    }

    /// Codec of the records.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Compression level, numbered as in Kafka: [`Compression::levels`]. Default: [`Compression::default_level`].
    #[must_use]
    pub fn level(mut self, level: i32) -> Self {
        self.level = Some(level);
        self
    }

    /// Offset of the batch, and of the first record unless [`BatchBuilder::append_at`] sets another.
    #[must_use]
    pub fn base_offset(mut self, base_offset: i64) -> Self {
        self.base_offset = base_offset;
        self
    }

    /// The type of the timestamps. Magic 0 has no timestamps.
    #[must_use]
    pub fn timestamp_type(mut self, timestamp_type: TimestampType) -> Self {
        self.timestamp_type = timestamp_type;
        self
    }

    /// The timestamp of all records with [`TimestampType::LogAppendTime`], milliseconds since the epoch. Also sets that
    /// type.
    #[must_use]
    pub fn log_append_time(mut self, timestamp: i64) -> Self {
        self.timestamp_type = TimestampType::LogAppendTime;
        self.log_append_time = timestamp;
        self
    }

    /// Producer id, epoch and the sequence of the first record.
    #[must_use]
    pub fn producer(mut self, producer_id: i64, producer_epoch: i16, base_sequence: i32) -> Self {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (producer_id, producer_epoch, base_sequence);
        self
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn transactional(mut self, transactional: bool) -> Self {
        self.transactional = transactional;
        self
    }

    /// Whether the batch holds control records.
    #[must_use]
    pub fn control(mut self, control: bool) -> Self {
        self.control = control;
        self
    }

    /// Leader epoch of the append.
    #[must_use]
    pub fn partition_leader_epoch(mut self, epoch: i32) -> Self {
        self.partition_leader_epoch = epoch;
        self
    }

    /// Stores a delete horizon instead of the base timestamp, milliseconds since the epoch.
    #[must_use]
    pub fn delete_horizon_ms(mut self, horizon: i64) -> Self {
        self.delete_horizon_ms = Some(horizon);
        self
    }

    /// Sets the last offset of the batch, if that is not its last record's offset (as after compaction). A reader of a
    /// compressed set of magic 1 computes the offsets of all its records from this one.
    #[must_use]
    pub fn last_offset(mut self, last_offset: i64) -> Self {
        self.forced_last_offset = Some(last_offset);
        self
    }

    /// Checks the settings against each other, as Kafka does when it creates a builder.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) with the broken rule.
    pub fn validate(&self) -> Result<()> {
        let magic = self.magic;
        let refuse = |what: &str| Err(Error::argument(what));
        if magic > 2 {
            return refuse(&format!("magic {magic} is not a message format: use 0, 1 or 2"));
        }
        if let Some(level) = self.level {
            self.validate_level(level)?;
        }
        if magic < 2 {
            if self.transactional {
                return refuse(&format!("transactional records are not supported for magic {magic}"));
            }
            if self.control {
                return refuse(&format!("control records are not supported for magic {magic}"));
            }
            if magic < self.compression.min_magic() {
                return refuse(&format!("{} compression is not supported for magic {magic}", self.compression));
            }
            if self.delete_horizon_ms.is_some() {
                return refuse(&format!("a delete horizon is not supported for magic {magic}"));
            }
        }
        if self.delete_horizon_ms.is_some_and(|horizon| horizon < 0) {
            return refuse("a delete horizon must not be negative");
        }
        Ok(())
    }

    fn validate_level(&self, level: i32) -> Result<()> {
        match self.compression.levels() {
            None => Err(Error::argument(format!("{} compression has no levels", self.compression))),
            Some((lowest, highest)) if !(lowest..=highest).contains(&level) => Err(Error::argument(format!(
                "{} compression has levels {lowest} to {highest}, not {level}",
                self.compression
            ))),
            Some(_) => Ok(()),
        }
    }

    /// All rules, including those that are checked when a batch is closed.
    pub(crate) fn validate_all(&self) -> Result<()> {
        self.validate()?;
        self.validate_producer()
    }

    /// Kafka's rules for producers, checked when a batch is closed.
    fn validate_producer(&self) -> Result<()> {
        if self.producer_id == NO_PRODUCER_ID {
            if self.transactional {
                return Err(Error::argument("a transactional batch needs a producer id"));
            }
            return Ok(());
        }
        if self.magic < 2 {
            return Err(Error::argument(format!("idempotent batches are not supported for magic {}", self.magic)));
        }
        if self.producer_epoch == NO_PRODUCER_EPOCH {
            return Err(Error::argument("a batch with a producer id needs a producer epoch"));
        }
        if self.base_sequence < 0 && !self.control {
            return Err(Error::argument("a batch with a producer id needs a base sequence of 0 or more"));
        }
        Ok(())
    }
}

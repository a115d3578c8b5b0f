//! [`LeaderEpochs`]: the start offset of each leader epoch of a partition, stored in `leader-epoch-checkpoint`.
//!
//! ```text
//! 0        version
//! 2        number of entries
//! 0 0      leader epoch, start offset
//! 3 1045
//! ```
//!
//! Source: `LeaderEpochFileCache` of Kafka, KIP-101 and KIP-279.

use std::path::Path;

use super::{encode_entries, parse_entries, read_text};
use crate::error::{Error, ErrorKind, Result};
use crate::format::header::BatchHeader;
use crate::io::Location;
use crate::io::atomic::write_atomically;

/// Kafka's value for "no leader epoch".
const UNDEFINED_EPOCH: i32 = -1;
/// Kafka's value for "no offset" in answers about epochs.
const UNDEFINED_EPOCH_OFFSET: i64 = -1;

/// A leader epoch and its start offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochEntry {
    /// The leader epoch.
    pub epoch: i32,
    /// First offset written by the epoch's leader.
    pub start_offset: i64,
}

impl EpochEntry {
    fn parse(fields: &[&str]) -> Option<Self> {
        match fields {
            [epoch, start_offset] => {
                Some(Self { epoch: epoch.parse().ok()?, start_offset: start_offset.parse().ok()? })
            }
            _ => None,
        }
    }
}

/// The leader epochs of a partition. Epochs and start offsets increase strictly, unless a file violates that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaderEpochs {
    entries: Vec<EpochEntry>,
}

impl LeaderEpochs {
    /// Creates an empty list of epochs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the list from entries in any order. If several have the same epoch, the last one counts.
    #[must_use]
    pub fn from_entries(entries: impl IntoIterator<Item = EpochEntry>) -> Self {
        let mut epochs = Self::new();
        for entry in entries {
            epochs.put(entry);
        }
        epochs
    }

    /// Reads a checkpoint file.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if the text is malformed; I/O errors.
    pub fn read(path: impl Into<Location>) -> Result<Self> {
        let path: &Location = &path.into();
        Self::parse(&read_text(path)?).map_err(|error| error.with_path(path))
    }

    /// Reads the checkpoint of a partition. Returns `None` if it does not exist. The error of a malformed file says what
    /// to do.
    ///
    /// # Errors
    /// The errors of [`LeaderEpochs::read`].
    pub(crate) fn read_existing(path: impl Into<Location>) -> Result<Option<Self>> {
        match Self::read(path) {
            Ok(epochs) => Ok(Some(epochs)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => {
                let is_malformed = matches!(error.kind(), ErrorKind::InvalidFile(_));
                Err(if is_malformed { error.with_note("recover writes a new file") } else { error })
            }
        }
    }

    /// Parses the text of a checkpoint.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if the text is malformed.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self::from_entries(parse_entries(text, EpochEntry::parse)?))
    }

    /// Encodes the checkpoint as text.
    #[must_use]
    pub fn encode(&self) -> String {
        encode_entries(self.entries.iter().map(|entry| format!("{} {}", entry.epoch, entry.start_offset)))
    }

    /// Writes a checkpoint file atomically.
    ///
    /// # Errors
    /// I/O errors.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_atomically(path, self.encode().as_bytes())
    }

    /// The epochs, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The latest epoch.
    #[must_use]
    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// Adds an epoch that starts at an offset. Removes entries whose epoch or start offset is not below the new one.
    /// Does nothing if the epoch is the latest and has an earlier or equal start offset. Returns whether anything
    /// changed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if a number is negative.
    pub fn assign(&mut self, epoch: i32, start_offset: i64) -> Result<bool> {
        if epoch < 0 || start_offset < 0 {
            return Err(Error::argument(format!(
                "leader epoch {epoch} and offset {start_offset} must not be negative"
            )));
        }
        if self.latest().is_some_and(|latest| latest.epoch == epoch && start_offset >= latest.start_offset) {
            return Ok(false);
        }
        while self.entries.pop_if(|last| last.epoch >= epoch || last.start_offset >= start_offset).is_some() {}
        self.put(EpochEntry { epoch, start_offset });
        Ok(true)
    }

    /// Adds the epoch of the next batch in the log, if it is above the latest.
    pub(crate) fn observe(&mut self, batch: &BatchHeader) -> Result<()> {
        let (epoch, first_offset) = (batch.partition_leader_epoch(), batch.stored_base_offset);
        if first_offset >= 0 && epoch >= 0 && self.latest().is_none_or(|latest| epoch > latest.epoch) {
            self.assign(epoch, first_offset)?;
        }
        Ok(())
    }

    /// Removes the epochs that start at or after an offset. For a log that was truncated to that offset.
    pub fn truncate_from_end(&mut self, end_offset: i64) {
        while self.entries.pop_if(|last| last.start_offset >= end_offset).is_some() {}
    }

    /// Removes the epochs that start at or before an offset, and adds the last of them again with that start offset.
    /// For a log whose records before the offset were deleted.
    pub fn truncate_from_start(&mut self, start_offset: i64) {
        let removed = self.entries.iter().take_while(|entry| entry.start_offset <= start_offset).count();
        let last = self.entries.drain(..removed).next_back();
        if let Some(last) = last {
            self.put(EpochEntry { epoch: last.epoch, start_offset });
        }
    }

    /// Returns a leader's answer to a follower that knows an epoch: the largest epoch up to that one and the offset
    /// after its last record, or (−1, −1) if unknown. `log_end_offset` is the end of the latest epoch.
    #[must_use]
    pub fn end_offset_for(&self, epoch: i32, log_end_offset: i64) -> (i32, i64) {
        if epoch == UNDEFINED_EPOCH {
            return (UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET);
        }
        if self.latest().is_some_and(|latest| latest.epoch == epoch) {
            return (epoch, log_end_offset);
        }
        let higher = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let floor = higher.checked_sub(1).and_then(|floor| self.entries.get(floor));
        match (self.entries.get(higher), floor) {
            (None, _) => (UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET),
            (Some(higher), None) => (epoch, higher.start_offset),
            (Some(higher), Some(floor)) => (floor.epoch, higher.start_offset),
        }
    }

    /// Returns the epoch in which an offset was written, or `None` before the first epoch.
    #[must_use]
    pub fn epoch_for_offset(&self, offset: i64) -> Option<i32> {
        self.entries.iter().take_while(|entry| entry.start_offset <= offset).last().map(|entry| entry.epoch)
    }

    fn put(&mut self, entry: EpochEntry) {
        match self.entries.binary_search_by_key(&entry.epoch, |known| known.epoch) {
            Ok(place) => self.entries.splice(place..=place, [entry]).for_each(drop),
            Err(place) => self.entries.insert(place, entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
        let mut epochs = LeaderEpochs::new();
        for (epoch, start_offset) in entries {
            epochs.assign(*epoch, *start_offset).unwrap();
        }
        epochs
    }

    fn pairs(epochs: &LeaderEpochs) -> Vec<(i32, i64)> {
        epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect()
    }

    #[test]
    fn assign_of_the_latest_epoch_keeps_its_earliest_offset() {
        let mut epochs = epochs(&[(0, 104), (0, 105), (1, 106), (2, 110)]);
        assert_eq!(pairs(&epochs), [(0, 104), (1, 106), (2, 110)]);
        assert!(!epochs.assign(2, 111).unwrap());
        assert!(epochs.assign(2, 108).unwrap());
        assert_eq!(pairs(&epochs), [(0, 104), (1, 106), (2, 108)]);
    }

    #[test]
    fn assign_removes_what_is_not_below() {
        assert_eq!(pairs(&epochs(&[(1, 10), (3, 20), (5, 30), (2, 40)])), [(1, 10), (2, 40)]);
        assert_eq!(pairs(&epochs(&[(1, 10), (3, 20), (5, 30), (6, 15)])), [(1, 10), (6, 15)]);
        assert_eq!(pairs(&epochs(&[(1, 10), (2, 10)])), [(2, 10)]);
        assert!(LeaderEpochs::new().assign(-1, 0).is_err());
        assert!(LeaderEpochs::new().assign(0, -1).is_err());
    }

    #[test]
    fn truncate_from_end_removes_later_starts() {
        let all = [(2, 6), (3, 8), (4, 11)];
        for (end, kept) in [(9, 2), (8, 1), (11, 2), (12, 3), (0, 0)] {
            let mut epochs = epochs(&all);
            epochs.truncate_from_end(end);
            assert_eq!(pairs(&epochs), all[..kept], "{end}");
        }
    }

    #[test]
    fn truncate_from_start_moves_the_last_removed() {
        let all = [(2, 6), (3, 8), (4, 11)];
        let cases: [(i64, &[(i32, i64)]); 6] = [
            (5, &all),
            (6, &all),
            (7, &[(2, 7), (3, 8), (4, 11)]),
            (8, &[(3, 8), (4, 11)]),
            (9, &[(3, 9), (4, 11)]),
            (99, &[(4, 99)]),
        ];
        for (start, kept) in cases {
            let mut epochs = epochs(&all);
            epochs.truncate_from_start(start);
            assert_eq!(pairs(&epochs), kept, "{start}");
        }
    }

    #[test]
    fn end_offset_for_gives_the_floor_epoch_and_the_next_start() {
        let epochs = epochs(&[(2, 6), (4, 11), (7, 20)]);
        let cases =
            [(7, (7, 30)), (4, (4, 20)), (5, (4, 20)), (3, (2, 11)), (1, (1, 6)), (8, (-1, -1)), (-1, (-1, -1))];
        for (epoch, answer) in cases {
            assert_eq!(epochs.end_offset_for(epoch, 30), answer, "{epoch}");
        }
        assert_eq!(LeaderEpochs::new().end_offset_for(0, 30), (-1, -1));
    }

    #[test]
    fn epoch_for_offset_is_the_one_that_began_before() {
        let epochs = epochs(&[(2, 6), (4, 11)]);
        for (offset, epoch) in [(5, None), (6, Some(2)), (10, Some(2)), (11, Some(4)), (99, Some(4))] {
            assert_eq!(epochs.epoch_for_offset(offset), epoch, "{offset}");
        }
    }
}

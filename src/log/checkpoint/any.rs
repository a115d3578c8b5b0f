//! [`Checkpoint`]: a checkpoint of either kind, recognized by the number of fields in its lines.

use super::{LeaderEpochs, OffsetCheckpoint, VERSION, fields, lines, read_text};
use crate::error::Result;
use crate::io::Location;
use crate::store::names::LEADER_EPOCHS;

/// A checkpoint of either kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checkpoint {
    /// Offsets of partitions.
    Offsets(OffsetCheckpoint),
    /// Leader epochs of a partition.
    LeaderEpochs(LeaderEpochs),
}

impl Checkpoint {
    /// Reads a checkpoint file. The name decides the kind if the file has no entries.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if the text is malformed; I/O errors.
    pub fn read(path: impl Into<Location>) -> Result<Self> {
        let path: &Location = &path.into();
        let text = read_text(path)?;
        let named = || path.file_name().is_some_and(|name| name == LEADER_EPOCHS);
        let parsed = match lines(&text).nth(2).map(|line| fields(line).len()) {
            Some(2) => LeaderEpochs::parse(&text).map(Self::LeaderEpochs),
            None if named() => LeaderEpochs::parse(&text).map(Self::LeaderEpochs),
            _ => OffsetCheckpoint::parse(&text).map(Self::Offsets),
        };
        parsed.map_err(|error| error.with_path(path))
    }

    /// Version of the file format.
    #[must_use]
    pub fn version(&self) -> i32 {
        VERSION
    }
}

//! `.kafka_cleanshutdown` at the top of a log directory: created by a clean shutdown, removed at the next start.
//!
//! ```text
//! {"version":0,"brokerEpoch":106}
//! ```
//!
//! Only its existence matters: if the content is malformed, just the broker's epoch is unknown.
//!
//! Source: `CleanShutdownFileHandler` of Kafka.

use std::path::Path;

use crate::error::{ErrorKind, Result};
use crate::io::Location;
use crate::io::atomic::write_atomically;

/// Name of the file.
pub(crate) const FILE_NAME: &str = ".kafka_cleanshutdown";
/// Largest number of bytes to read.
const MAX_LEN: usize = 1 << 16;

/// The content of the clean-shutdown marker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CleanShutdown {
    /// Epoch of the broker that shut down. `None` if the file does not contain it, as before Kafka 3.7.
    pub broker_epoch: Option<i64>,
}

impl CleanShutdown {
    /// Reads the marker of a log directory. Returns `None` if there is no marker.
    ///
    /// # Errors
    /// I/O errors, except if the file does not exist.
    pub fn read(log_directory: impl Into<Location>) -> Result<Option<Self>> {
        let log_directory: &Location = &log_directory.into();
        match log_directory.join(FILE_NAME).read_small(MAX_LEN) {
            Ok(bytes) => Ok(Some(Self::parse(&bytes))),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidFile(_)) => Ok(Some(Self::default())),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Parses the content of the marker.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let epoch = || {
            let text = std::str::from_utf8(bytes).ok()?.trim();
            let members = text.strip_prefix('{')?.strip_suffix('}')?;
            let member = members.split(',').find_map(|member| member.trim().strip_prefix("\"brokerEpoch\""))?;
            member.trim_start().strip_prefix(':')?.trim().parse().ok()
        };
        Self { broker_epoch: epoch() }
    }

    /// Writes the marker to a log directory atomically. An unknown epoch is written as −1.
    ///
    /// # Errors
    /// I/O errors.
    pub fn write(&self, log_directory: impl AsRef<Path>) -> Result<()> {
        let log_directory = log_directory.as_ref();
        let content = format!("{{\"version\":0,\"brokerEpoch\":{}}}", self.broker_epoch.unwrap_or(-1));
        write_atomically(&log_directory.join(FILE_NAME), content.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marker_tells_the_epoch_where_it_can_be_read() {
        let cases: [(&[u8], Option<i64>); 6] = [
            (b"{\"version\":0,\"brokerEpoch\":106}", Some(106)),
            (b" { \"brokerEpoch\" : -1 , \"version\" : 0 }\n", Some(-1)),
            (b"", None),
            (b"{\"version\":0}", None),
            (b"{\"version\":0,\"brokerEpoch\":\"x\"}", None),
            (b"\xff", None),
        ];
        for (content, epoch) in cases {
            assert_eq!(CleanShutdown::parse(content).broker_epoch, epoch);
        }
    }
}

//! The small text files next to segments and at the top of a log directory.
//!
//! | file | content | module |
//! |---|---|---|
//! | `*-offset-checkpoint` | an offset for each partition | `offsets` |
//! | `leader-epoch-checkpoint` | the start offset of each leader epoch | `epochs` |
//! | `partition.metadata` | the id of the topic | `partition` |
//! | `meta.properties` | the ids of the broker and the cluster | `properties` |
//! | `.kafka_cleanshutdown` | exists after a clean shutdown | `shutdown` |
//!
//! Both kinds of checkpoint have the same structure:
//! ```text
//! 0            version
//! 2            number of entries
//! topicA 0 17  topic, partition, offset; or leader epoch, start offset
//! topicB 3 5
//! ```
//!
//! The text is UTF-8, with fields separated by white space. A file that is empty or contains only the version has no
//! entries. All files are written atomically.
//!
//! Source: `CheckpointFile`, `OffsetCheckpointFile`, `LeaderEpochCheckpointFile` of Kafka.

mod any;
mod epochs;
mod offsets;
mod partition;
mod properties;
mod shutdown;

pub use any::Checkpoint;
pub use epochs::{EpochEntry, LeaderEpochs};
pub use offsets::{OffsetCheckpoint, PartitionOffset};
pub use partition::PartitionMetadata;
pub use properties::MetaProperties;
pub use shutdown::CleanShutdown;

use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;

/// Largest size of such a file in bytes.
const MAX_LEN: usize = 1 << 26;
/// Version of both kinds of checkpoint.
const VERSION: i32 = 0;

fn fault(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidFile(message.into()))
}

fn malformed(line_number: usize, line: &str) -> Error {
    let mut shown: String = line.chars().take(80).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    fault(format!("line {line_number} is malformed: {shown:?}"))
}

fn read_text(path: &Location) -> Result<String> {
    let bytes = path.read_small(MAX_LEN)?;
    String::from_utf8(bytes).map_err(|_| fault("the text is not UTF-8").with_path(path))
}

/// Splits a text into lines as Java's `BufferedReader` does: `\n`, `\r` and `\r\n` end a line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\n', '\r']) else {
            rest = None;
            return Some(text);
        };
        let (line, after) = text.split_at_checked(end)?;
        let after = after.strip_prefix("\r\n").or_else(|| after.get(1..)).unwrap_or_default();
        rest = Some(after).filter(|after| !after.is_empty());
        Some(line)
    })
}

/// Splits a line into fields as Java's `split("\\s+")` does: leading white space yields an empty first field.
fn fields(line: &str) -> Vec<&str> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r');
    let trimmed = line.trim_end_matches(is_space);
    let leading = trimmed.starts_with(is_space).then_some("");
    leading.into_iter().chain(trimmed.split(is_space).filter(|field| !field.is_empty())).collect()
}

/// Parses a checkpoint with a function that makes an entry from the fields of a line.
fn parse_entries<T>(text: &str, entry: impl Fn(&[&str]) -> Option<T>) -> Result<Vec<T>> {
    let number = |line: &str, number: usize| line.parse::<i32>().map_err(|_| malformed(number, line));
    let mut lines = lines(text);
    let Some(version) = lines.next() else { return Ok(Vec::new()) };
    let version = number(version, 1)?;
    if version != VERSION {
        return Err(fault(format!("checkpoint version {version} is not supported, only version {VERSION} is"))
            .in_field("version"));
    }
    let Some(declared) = lines.next() else { return Ok(Vec::new()) };
    let declared = number(declared, 2)?;
    let mut entries = Vec::new();
    for (line, number) in lines.zip(3..) {
        entries.push(entry(&fields(line)).ok_or_else(|| malformed(number, line))?);
    }
    if usize::try_from(declared) != Ok(entries.len()) {
        return Err(fault(format!("the file declares {declared} entries but contains {}", entries.len())));
    }
    Ok(entries)
}

/// Encodes a checkpoint from its lines without line ends.
fn encode_entries(lines: impl ExactSizeIterator<Item = String>) -> String {
    let head = [VERSION.to_string(), lines.len().to_string()];
    head.into_iter().chain(lines).fold(String::new(), |text, line| text + &line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Result<Vec<(i32, i64)>> {
        parse_entries(text, |fields| match fields {
            [a, b] => Some((a.parse().ok()?, b.parse().ok()?)),
            _ => None,
        })
    }

    #[test]
    fn entries_are_read_with_any_line_ends_and_spaces() {
        for text in ["0\n2\n1 5\n2 9\n", "0\r\n2\r\n1 5\r\n2 9", "0\r2\r1\t5  \r2 \u{b} 9\r"] {
            assert_eq!(pairs(text).unwrap(), [(1, 5), (2, 9)], "{text:?}");
        }
    }

    #[test]
    fn entries_of_an_empty_text_or_a_version_alone_are_none() {
        for text in ["", "0", "0\n", "0\n0", "0\n0\n"] {
            assert_eq!(pairs(text).unwrap(), [], "{text:?}");
        }
    }

    #[test]
    fn entries_of_a_malformed_text_are_refused() {
        let texts = [
            "\n",
            "1\n0\n",
            "0\n1\n",
            "0\n0\n1 2\n",
            "0\n1\n1 2\n\n",
            "0\n1\n 1 2\n",
            "0\n1\n1 2 3\n",
            "x\n",
            "0 \n",
            "0\n-1\n",
            "0\n2147483647\n1 2\n",
            "0\n1\n1 99999999999999999999\n",
        ];
        for text in texts {
            let error = pairs(text).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::InvalidFile(_)), "{text:?}: {error}");
        }
    }

    #[test]
    fn entries_round_trip() {
        let text = encode_entries(["1 5".to_owned(), "2 9".to_owned()].into_iter());
        assert_eq!(text, "0\n2\n1 5\n2 9\n");
        assert_eq!(pairs(&text).unwrap(), [(1, 5), (2, 9)]);
    }
}

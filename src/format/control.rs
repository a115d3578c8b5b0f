//! Control records: transaction markers and KRaft's own records.
//!
//! ```text
//! key    version i16, type i16
//! value  ABORT, COMMIT      version i16, coordinator_epoch i32
//!        LEADER_CHANGE      version i16, leader_id i32, voters [id i32, (v1) directory id uuid],
//!                           granting_voters (same fields as voters)
//!        SNAPSHOT_HEADER    version i16, last_contained_log_timestamp i64
//!        SNAPSHOT_FOOTER    version i16
//!        KRAFT_VERSION      version i16, kraft_version i16
//!        KRAFT_VOTERS       version i16, voters [id i32, directory id uuid, endpoints [name, host, port u16],
//!                           min and max kraft.version i16]
//! ```
//!
//! KRaft's values are flexible messages: compact arrays and strings, and tagged fields at the end of each structure,
//! which are skipped. As in Kafka, newer versions are read as the newest known one. Source:
//! `clients/src/main/resources/common/message` of Kafka, KIP-98, KIP-595, KIP-630, KIP-853.

use std::fmt;

use crate::error::{ErrorKind, Result};
use crate::format::cursor::Cursor;
use crate::format::record::Record;
use crate::wire::varint::write_unsigned_varint;

/// The content of a control record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControlRecord {
    /// The producer's transaction was aborted.
    Abort {
        /// Epoch of the transaction coordinator that wrote the marker.
        coordinator_epoch: i32,
    },
    /// The producer's transaction was committed.
    Commit {
        /// Epoch of the transaction coordinator that wrote the marker.
        coordinator_epoch: i32,
    },
    /// A new KRaft leader.
    LeaderChange {
        /// The leader's node id.
        leader_id: i32,
        /// All voters of that epoch.
        voters: Vec<LeaderChangeVoter>,
        /// The voters that voted for the leader.
        granting_voters: Vec<LeaderChangeVoter>,
    },
    /// First record of a KRaft snapshot.
    SnapshotHeader {
        /// Append time of the last record in the snapshot, milliseconds since the epoch.
        last_contained_log_timestamp: i64,
    },
    /// Last record of a KRaft snapshot.
    SnapshotFooter,
    /// The KRaft protocol version.
    KRaftVersion {
        /// 0 or 1.
        kraft_version: i16,
    },
    /// The set of voters (KIP-853).
    KRaftVoters {
        /// All voters.
        voters: Vec<KRaftVoter>,
    },
    /// A type that this version of kbat does not know.
    Unknown {
        /// The number in the key.
        type_id: i16,
    },
}

/// A voter of a [`ControlRecord::LeaderChange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaderChangeVoter {
    /// Node id.
    pub id: i32,
    /// Directory id; `None` in version 0.
    pub directory_id: Option<[u8; 16]>,
}

/// A voter of a [`ControlRecord::KRaftVoters`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KRaftVoter {
    /// Node id.
    pub id: i32,
    /// Directory id.
    pub directory_id: [u8; 16],
    /// The endpoints that it listens on.
    pub endpoints: Vec<Endpoint>,
    /// Lowest and highest `kraft.version` it supports.
    pub kraft_versions: (i16, i16),
}

/// A listener of a [`KRaftVoter`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Name of the listener.
    pub name: String,
    /// Host name.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl fmt::Display for ControlRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.type_name())
    }
}

impl ControlRecord {
    /// Number of the type, as stored in the key.
    #[must_use]
    pub fn type_id(&self) -> i16 {
        match self {
            Self::Abort { .. } => 0,
            Self::Commit { .. } => 1,
            Self::LeaderChange { .. } => 2,
            Self::SnapshotHeader { .. } => 3,
            Self::SnapshotFooter => 4,
            Self::KRaftVersion { .. } => 5,
            Self::KRaftVoters { .. } => 6,
            Self::Unknown { type_id } => *type_id,
        }
    }

    /// Kafka's name for the type, or for example `UNKNOWN(7)` for a type that Kafka does not define.
    #[must_use]
    pub fn type_name(&self) -> String {
        let name = match self {
            Self::Abort { .. } => "ABORT",
            Self::Commit { .. } => "COMMIT",
            Self::LeaderChange { .. } => "LEADER_CHANGE",
            Self::SnapshotHeader { .. } => "SNAPSHOT_HEADER",
            Self::SnapshotFooter => "SNAPSHOT_FOOTER",
            Self::KRaftVersion { .. } => "KRAFT_VERSION",
            Self::KRaftVoters { .. } => "KRAFT_VOTERS",
            Self::Unknown { type_id } => return format!("UNKNOWN({type_id})"),
        };
        name.to_owned()
    }

    /// Parses a record of a control batch.
    ///
    /// # Errors
    /// A key or value that is null, is too short or has a negative version.
    pub fn parse(record: &Record<'_>) -> Result<Self> {
        Self::parse_parts(record.key(), record.value()).map_err(|error| record.place.locate(error))
    }

    fn parse_parts(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Self> {
        let mut key = Cursor::new(key.unwrap_or_default(), 0);
        version(&mut key, "control_key_version")?;
        let type_id = key.i16("control_type")?;
        let mut value = Cursor::new(value.unwrap_or_default(), 0);
        if !is_known_type(type_id) {
            return Ok(Self::Unknown { type_id });
        }
        let version = version(&mut value, "control_value_version")?;
        Ok(match type_id {
            0 => Self::Abort { coordinator_epoch: value.i32("coordinator_epoch")? },
            1 => Self::Commit { coordinator_epoch: value.i32("coordinator_epoch")? },
            2 => Self::LeaderChange {
                leader_id: value.i32("leader_id")?,
                voters: leader_change_voters(&mut value, version)?,
                granting_voters: leader_change_voters(&mut value, version)?,
            },
            3 => Self::SnapshotHeader { last_contained_log_timestamp: value.i64("last_contained_log_timestamp")? },
            4 => Self::SnapshotFooter,
            5 => Self::KRaftVersion { kraft_version: value.i16("kraft_version")? },
            _ => Self::KRaftVoters { voters: array(&mut value, "voters", kraft_voter)? },
        })
    }

    /// Whether a key has a type that Kafka defines. Newer versions of the key are parsed as the known one.
    pub(crate) fn is_known_key(key: Option<&[u8]>) -> bool {
        let mut key = Cursor::new(key.unwrap_or_default(), 0);
        version(&mut key, "control_key_version").is_ok() && key.i16("control_type").is_ok_and(is_known_type)
    }

    /// Encodes key and value as Kafka does.
    pub(crate) fn encode(&self) -> (Vec<u8>, Vec<u8>) {
        let mut key = vec![0, 0];
        key.extend_from_slice(&self.type_id().to_be_bytes());
        (key, self.encode_value())
    }

    fn encode_value(&self) -> Vec<u8> {
        let mut value = vec![0, 0];
        match self {
            Self::Abort { coordinator_epoch } | Self::Commit { coordinator_epoch } => {
                value.extend_from_slice(&coordinator_epoch.to_be_bytes());
                return value;
            }
            Self::LeaderChange { leader_id, voters, granting_voters } => {
                let with_directories = voters.iter().chain(granting_voters).any(|voter| voter.directory_id.is_some());
                value = i16::from(with_directories).to_be_bytes().to_vec();
                value.extend_from_slice(&leader_id.to_be_bytes());
                for list in [voters, granting_voters] {
                    write_array(&mut value, list, |out, voter| {
                        out.extend_from_slice(&voter.id.to_be_bytes());
                        if with_directories {
                            out.extend_from_slice(&voter.directory_id.unwrap_or_default());
                        }
                        out.push(0);
                    });
                }
            }
            Self::SnapshotHeader { last_contained_log_timestamp } => {
                value.extend_from_slice(&last_contained_log_timestamp.to_be_bytes());
            }
            Self::KRaftVersion { kraft_version } => value.extend_from_slice(&kraft_version.to_be_bytes()),
            Self::KRaftVoters { voters } => write_array(&mut value, voters, write_kraft_voter),
            Self::SnapshotFooter | Self::Unknown { .. } => {}
        }
        value.push(0); // no tagged fields
        value
    }
}

fn is_known_type(type_id: i16) -> bool {
    (0..=6).contains(&type_id)
}

fn version(cursor: &mut Cursor<'_>, field: &'static str) -> Result<i16> {
    match cursor.i16(field)? {
        version @ 0.. => Ok(version),
        version => {
            let kind = ErrorKind::InvalidValue { value: version.into(), expected: "a version of 0 or more" };
            Err(cursor.fault(kind, field))
        }
    }
}

/// A compact array: its length plus one as an unsigned varint, then the elements. Grows with the elements that are
/// parsed, not with the declared length.
fn array<T>(
    cursor: &mut Cursor<'_>,
    field: &'static str,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = cursor.unsigned_varint(field)?.saturating_sub(1);
    let mut elements = Vec::new();
    for _ in 0..count {
        elements.push(read(cursor)?);
    }
    Ok(elements)
}

fn skip_tagged_fields(cursor: &mut Cursor<'_>) -> Result<()> {
    for _ in 0..cursor.unsigned_varint("tagged_fields")? {
        cursor.unsigned_varint("tag")?;
        let len = cursor.unsigned_varint("tagged_field_length")?;
        cursor.bytes(len, "tagged_field")?;
    }
    Ok(())
}

fn string(cursor: &mut Cursor<'_>, field: &'static str) -> Result<String> {
    let len = cursor.unsigned_varint(field)?.saturating_sub(1);
    Ok(String::from_utf8_lossy(cursor.bytes(len, field)?).into_owned())
}

fn leader_change_voters(cursor: &mut Cursor<'_>, version: i16) -> Result<Vec<LeaderChangeVoter>> {
    array(cursor, "voters", |cursor| {
        let id = cursor.i32("voter_id")?;
        let directory_id = if version >= 1 { Some(cursor.uuid("voter_directory_id")?) } else { None };
        skip_tagged_fields(cursor)?;
        Ok(LeaderChangeVoter { id, directory_id })
    })
}

fn kraft_voter(cursor: &mut Cursor<'_>) -> Result<KRaftVoter> {
    let id = cursor.i32("voter_id")?;
    let directory_id = cursor.uuid("voter_directory_id")?;
    let endpoints = array(cursor, "endpoints", |cursor| {
        let endpoint =
            Endpoint { name: string(cursor, "name")?, host: string(cursor, "host")?, port: cursor.u16("port")? };
        skip_tagged_fields(cursor)?;
        Ok(endpoint)
    })?;
    let kraft_versions = (cursor.i16("min_supported_version")?, cursor.i16("max_supported_version")?);
    skip_tagged_fields(cursor)?;
    skip_tagged_fields(cursor)?;
    Ok(KRaftVoter { id, directory_id, endpoints, kraft_versions })
}

fn write_array<T>(out: &mut Vec<u8>, elements: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    write_unsigned_varint(out, u32::try_from(elements.len()).unwrap_or(u32::MAX).saturating_add(1));
    for element in elements {
        write(out, element);
    }
}

fn write_kraft_voter(out: &mut Vec<u8>, voter: &KRaftVoter) {
    out.extend_from_slice(&voter.id.to_be_bytes());
    out.extend_from_slice(&voter.directory_id);
    write_array(out, &voter.endpoints, |out, endpoint| {
        for text in [&endpoint.name, &endpoint.host] {
            write_unsigned_varint(out, u32::try_from(text.len()).unwrap_or(u32::MAX).saturating_add(1));
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(&endpoint.port.to_be_bytes());
        out.push(0);
    });
    out.extend_from_slice(&voter.kraft_versions.0.to_be_bytes());
    out.extend_from_slice(&voter.kraft_versions.1.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(key: &[u8], value: &[u8]) -> Result<ControlRecord> {
        ControlRecord::parse_parts(Some(key), Some(value))
    }

    #[test]
    fn control_record_every_type_round_trips() {
        let voter = LeaderChangeVoter { id: 3, directory_id: Some([7; 16]) };
        let endpoint = Endpoint { name: "CONTROLLER".into(), host: "localhost".into(), port: 9093 };
        let kraft_voter =
            KRaftVoter { id: 1, directory_id: [9; 16], endpoints: vec![endpoint], kraft_versions: (0, 1) };
        for record in [
            ControlRecord::Abort { coordinator_epoch: 347 },
            ControlRecord::Commit { coordinator_epoch: -1 },
            ControlRecord::LeaderChange { leader_id: 3, voters: vec![voter], granting_voters: vec![voter, voter] },
            ControlRecord::SnapshotHeader { last_contained_log_timestamp: 1_700_000_000_000 },
            ControlRecord::SnapshotFooter,
            ControlRecord::KRaftVersion { kraft_version: 1 },
            ControlRecord::KRaftVoters { voters: vec![kraft_voter] },
        ] {
            let (key, value) = record.encode();
            assert_eq!(parse(&key, &value).unwrap(), record);
        }
    }

    #[test]
    fn control_record_unknown_type_is_named_by_number() {
        let record = parse(&[0, 0, 0x01, 0x51], &[]).unwrap();
        assert_eq!(record, ControlRecord::Unknown { type_id: 337 });
        assert_eq!(record.type_name(), "UNKNOWN(337)");
    }

    #[test]
    fn control_record_newer_versions_are_read() {
        let record = parse(&[0, 5, 0, 0, 1, 2, 3, 4], &[0, 2, 0, 0, 1, 91, 9, 9]).unwrap();
        assert_eq!(record, ControlRecord::Abort { coordinator_epoch: 347 });
    }

    #[test]
    fn control_record_short_or_negative_is_refused() {
        for key in [&[][..], &[0, 0, 0], &[0xff, 0xff, 0, 1]] {
            assert!(parse(key, &[0, 0, 0, 0, 0, 0]).is_err(), "{key:?}");
        }
        for value in [&[][..], &[0, 0, 0, 0, 0], &[0xff, 0xff, 0, 0, 0, 0]] {
            assert!(parse(&[0, 0, 0, 1], value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn control_record_huge_array_count_allocates_nothing() {
        let value = [0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert!(matches!(parse(&[0, 0, 0, 6], &value).unwrap_err().kind(), ErrorKind::Truncated));
    }
}

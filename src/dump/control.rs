//! Control records: transaction markers, and KRaft's records as JSON.

use crate::dump::sink::{push, push_field};
use crate::error::{Error, Result};
use crate::format::control::ControlRecord;
use crate::format::record::Record;
use crate::internal::{control_message, versioned_message};

/// Appends the content of a control record.
///
/// Kafka 4.3.1 reads a `LeaderChangeMessage` of version 1 as version 0, and fails or shows wrong voters. This reads the
/// version in the record.
pub(super) fn write(out: &mut Vec<u8>, record: &Record<'_>) -> Result<()> {
    let control = ControlRecord::parse(record)?;
    let label = match &control {
        ControlRecord::Abort { coordinator_epoch } | ControlRecord::Commit { coordinator_epoch } => {
            push(out, " endTxnMarker: ");
            push(out, &control.type_name());
            push_field(out, " coordinatorEpoch: ", (*coordinator_epoch).into());
            return Ok(());
        }
        ControlRecord::Unknown { type_id } => {
            push_field(out, " controlType: UNKNOWN(", (*type_id).into());
            out.push(b')');
            return Ok(());
        }
        ControlRecord::LeaderChange { .. } => " LeaderChange: ",
        ControlRecord::SnapshotHeader { .. } => " SnapshotHeader ",
        ControlRecord::SnapshotFooter => " SnapshotFooter ",
        ControlRecord::KRaftVersion { .. } => " KRaftVersion ",
        ControlRecord::KRaftVoters { .. } => " KRaftVoters ",
    };
    push(out, label);
    let message = versioned_message(control_message(&control).unwrap_or_default(), record.value.unwrap_or_default());
    message.map_err(|fault| record.place.locate(Error::from(fault)))?.write_json(out);
    Ok(())
}

//! Messages of Kafka about frames of internal topics.

use crate::internal::Fault;

/// Kafka's message about a frame that it cannot decode.
#[cold]
pub(super) fn framed_fault(fault: &Fault) -> String {
    match fault {
        Fault::UnknownType(type_id) => {
            format!("org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {type_id}")
        }
        Fault::InRecord { type_id, .. } => format!("Failed to deserialize record with type {type_id}"),
        other => other.java_message().into_owned(),
    }
}

//! Messages of Kafka about frames of internal topics.

use crate::internal::MessageError;

/// Kafka's message about a frame that it cannot decode.
#[cold]
pub(super) fn framed_fault(fault: &MessageError) -> String {
    match fault {
        MessageError::UnknownType(type_id) => {
            format!("org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {type_id}")
        }
        MessageError::InRecord { type_id, .. } => format!("Failed to deserialize record with type {type_id}"),
        other => other.java_message().into_owned(),
    }
}

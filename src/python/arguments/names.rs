//! Names and ids that are arguments of several functions.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::format::attributes::TimestampType;
use crate::internal::Family;
use crate::log::Uuid;

/// Parses the name of a timestamp type.
pub(crate) fn timestamp_type(name: &str) -> PyResult<TimestampType> {
    match name {
        "CreateTime" => Ok(TimestampType::CreateTime),
        "LogAppendTime" => Ok(TimestampType::LogAppendTime),
        _ => {
            let message = format!("unknown timestamp_type {name:?}: use \"CreateTime\" or \"LogAppendTime\"");
            Err(PyValueError::new_err(message))
        }
    }
}

/// Parses a topic id.
pub(crate) fn uuid(text: &str) -> PyResult<Uuid> {
    let message = || format!("topic_id {text:?} is not 22 characters of base64url");
    Uuid::parse(text).ok_or_else(|| PyValueError::new_err(message()))
}

/// The family of a decoder's name.
pub(crate) fn family_of(name: &str) -> Option<Family> {
    Some(match name {
        "offsets" => Family::Group,
        "transaction_log" => Family::Transaction,
        "cluster_metadata" => Family::Metadata,
        "share_group_state" => Family::Share,
        "remote_log_metadata" => Family::Remote,
        _ => return None,
    })
}

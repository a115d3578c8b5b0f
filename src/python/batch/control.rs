//! `kbat.ControlRecord`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::format::control::{ControlRecord, LeaderChangeVoter};

/// The content of a control record: a transaction marker or one of KRaft's own records.
#[pyclass(frozen, name = "ControlRecord", module = "kbat", eq, hash)]
#[derive(PartialEq, Hash)]
pub(crate) struct PyControlRecord(pub(crate) ControlRecord);

#[pymethods]
impl PyControlRecord {
    /// Kafka's name for the type.
    ///
    /// ``ABORT``, ``COMMIT``, ``LEADER_CHANGE``, ``SNAPSHOT_HEADER``, ``SNAPSHOT_FOOTER``, ``KRAFT_VERSION``,
    /// ``KRAFT_VOTERS``, or ``UNKNOWN(n)``.
    #[getter]
    fn r#type(&self) -> String {
        self.0.type_name()
    }

    /// Number of the type.
    #[getter]
    fn type_id(&self) -> i16 {
        self.0.type_id()
    }

    /// Epoch of the transaction coordinator; None except for ``ABORT`` and ``COMMIT``.
    #[getter]
    fn coordinator_epoch(&self) -> Option<i32> {
        match self.0 {
            ControlRecord::Abort { coordinator_epoch } | ControlRecord::Commit { coordinator_epoch } => {
                Some(coordinator_epoch)
            }
            _ => None,
        }
    }

    /// The fields of the record by Kafka's names in ``snake_case``. Directory ids are 16 bytes.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        match &self.0 {
            ControlRecord::Abort { coordinator_epoch } | ControlRecord::Commit { coordinator_epoch } => {
                fields.set_item("coordinator_epoch", coordinator_epoch)?;
            }
            ControlRecord::LeaderChange { leader_id, voters, granting_voters } => {
                fields.set_item("leader_id", leader_id)?;
                fields.set_item("voters", leader_change_voters(py, voters)?)?;
                fields.set_item("granting_voters", leader_change_voters(py, granting_voters)?)?;
            }
            ControlRecord::SnapshotHeader { last_contained_log_timestamp } => {
                fields.set_item("last_contained_log_timestamp", last_contained_log_timestamp)?;
            }
            ControlRecord::KRaftVersion { kraft_version } => fields.set_item("kraft_version", kraft_version)?,
            ControlRecord::KRaftVoters { voters } => {
                let list = PyList::empty(py);
                for voter in voters {
                    let entry = PyDict::new(py);
                    entry.set_item("voter_id", voter.id)?;
                    entry.set_item("voter_directory_id", voter.directory_id.as_slice())?;
                    let endpoints = PyList::empty(py);
                    for endpoint in &voter.endpoints {
                        endpoints.append((&endpoint.name, &endpoint.host, endpoint.port))?;
                    }
                    entry.set_item("endpoints", endpoints)?;
                    entry.set_item("min_supported_version", voter.kraft_versions.0)?;
                    entry.set_item("max_supported_version", voter.kraft_versions.1)?;
                    list.append(entry)?;
                }
                fields.set_item("voters", list)?;
            }
            ControlRecord::SnapshotFooter | ControlRecord::Unknown { .. } => {}
        }
        Ok(fields)
    }

    fn __repr__(&self) -> String {
        match self.coordinator_epoch() {
            Some(epoch) => format!("ControlRecord({}, coordinator_epoch={epoch})", self.0.type_name()),
            None => format!("ControlRecord({})", self.0.type_name()),
        }
    }
}

fn leader_change_voters<'py>(py: Python<'py>, voters: &[LeaderChangeVoter]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for voter in voters {
        let entry = PyDict::new(py);
        entry.set_item("voter_id", voter.id)?;
        entry.set_item("voter_directory_id", voter.directory_id.as_ref().map(<[u8; 16]>::as_slice))?;
        list.append(entry)?;
    }
    Ok(list)
}

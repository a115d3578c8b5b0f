//! `kbat.partition_for_key`.

use std::num::NonZeroU32;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Give the partition to which a Kafka producer sends records with this key: murmur2, as its default partitioner.
///
/// Args:
///     key: The key; producers spread records without one as they like.
///     partition_count: Partitions of the topic.
///
/// Raises:
///     ValueError: A count below 1.
///
/// Example:
///     >>> kbat.partition_for_key(b"21", 12)
///     0
#[pyfunction]
pub(crate) fn partition_for_key(key: &[u8], partition_count: i32) -> PyResult<u32> {
    let count = u32::try_from(partition_count).ok().and_then(NonZeroU32::new);
    let count = count.ok_or_else(|| PyValueError::new_err("partition_count must be 1 or more"))?;
    Ok(crate::partitioner::partition_for_key(key, count))
}

//! `kbat.partition_for_key`.

use std::num::NonZeroU32;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Compute the partition for a key as Kafka's default partitioner does, with murmur2.
///
/// Args:
///     key: The key of a record. Producers distribute records without a key by other rules.
///     partition_count: Number of partitions of the topic.
///
/// Raises:
///     ValueError: ``partition_count`` is less than 1.
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

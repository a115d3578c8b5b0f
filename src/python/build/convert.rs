//! `kbat.convert`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::broker::convert::{ConvertOptions, Loss, convert as convert_bytes};
use crate::compression::Compression;
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::source::required_bytes;
use crate::python::runtime::errors::OrRaise;

/// Convert batches to a message format. Offsets are kept; batches that need no conversion are copied.
///
/// Args:
///     data: Bytes-like: whole batches, of any format and in any order. An incomplete batch at the end is omitted.
///     magic: Message format to convert to: 0, 1 or 2.
///     compression: Codec to write with. Default: each batch keeps its codec. Control batches are never compressed.
///     level: Compression level, numbered as in Kafka.
///     first_offset: Convert as a broker up to 3.9 did for a consumer that fetches from this offset: copy batches of
///         the target's magic or a lower one, drop the records of uncompressed batches before this offset, and
///         reject zstd.
///     limits: Bounds on untrusted input.
///
/// Returns:
///     The bytes, and the names of the features that the target format does not support.
///
/// Raises:
///     CorruptError: A batch can't be read or has a wrong checksum.
///     UnsupportedError: A batch uses zstd, the target is below magic 2, and ``compression`` is not set.
///     ValueError: Options contradict each other, offsets do not rise, or a timestamp is negative.
///
/// Example:
///     >>> old, losses = kbat.convert(data, 1, compression="gzip")
#[pyfunction]
#[pyo3(signature = (data, magic, *, compression=None, level=None, first_offset=None, limits=None))]
pub(crate) fn convert<'py>(
    data: &Bound<'py, PyAny>,
    magic: i64,
    compression: Option<&str>,
    level: Option<i32>,
    first_offset: Option<i64>,
    limits: Option<PyLimits>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyList>)> {
    let py = data.py();
    let magic = u8::try_from(magic)
        .map_err(|_| PyValueError::new_err(format!("magic {magic} is not a message format: use 0, 1 or 2")))?;
    let compression = compression.map(str::parse::<Compression>).transpose().or_raise(py)?;
    let options = ConvertOptions { compression, level, first_offset };
    let (bytes, limits) = (required_bytes(data)?, or_default(limits));
    let mut out = Vec::new();
    let losses = py.detach(|| convert_bytes((*bytes).as_ref(), magic, &options, &limits, &mut out)).or_raise(py)?;
    Ok((PyBytes::new(py, &out), PyList::new(py, losses.iter().map(Loss::name))?))
}

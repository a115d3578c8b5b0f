//! `kbat._core.build.codecs`: the table of codecs.

use pyo3::prelude::*;

use crate::compression::Compression;

/// Name, Kafka's default level, lowest and highest level, the oldest message format.
type Described = (&'static str, Option<i32>, Option<(i32, i32)>, u8);

/// Return all codecs, in the order of Kafka's numbers, beginning with ``none``.
///
/// Returns:
///     The name of each codec, Kafka's default level, the lowest and the highest level, and the oldest message format
///     that may use the codec. Codecs without levels have None twice.
#[pyfunction]
pub(crate) fn codecs() -> Vec<Described> {
    let described = |codec: Compression| (codec.name(), codec.default_level(), codec.levels(), codec.min_magic());
    Compression::ALL.into_iter().map(described).collect()
}

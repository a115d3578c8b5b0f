//! The submodule `kbat._core.dump`: the output of `kafka-dump-log`.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::dump::{Decoder, Format, Options, dump as dump_files};
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::location::StoreArguments;
use crate::python::arguments::names::family_of;
use crate::python::runtime::callback::Callback;
use crate::python::runtime::progress::run;
use crate::python::runtime::submodule::add_submodule;

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "dump", "Print the files of a partition as ``kafka-dump-log`` does.")?;
    module.add_function(wrap_pyfunction!(dump, &module)?)
}

/// Print files as ``kafka-dump-log`` does, line for line.
///
/// Args:
///     paths: ``.log``, ``.checkpoint``, ``.index``, ``.timeindex``, ``.txnindex`` and ``.snapshot`` files, or URLs.
///     write: Called with a large piece of the output, as bytes.
///     note: Called with what ``kafka-dump-log`` writes to its standard error, as bytes.
///     contents: Print keys and values; includes ``deep``.
///     deep: Print records, not only batches.
///     skip_record_metadata: Print only keys and values of records.
///     verify_index_only: Compare indexes with the log without printing their entries.
///     index_sanity_check: Only check what a broker checks when it starts.
///     max_message_size: Bytes after an index entry's position in which its batch must end.
///     max_bytes: Bytes of each log to read. Default: all.
///     decoder: ``text``, ``offsets``, ``transaction_log``, ``cluster_metadata``, ``share_group_state`` or
///         ``remote_log_metadata``.
///     output_format: ``kafka`` for the lines of ``kafka-dump-log``, ``table`` or ``jsonl``.
///     limits: Bounds on untrusted input.
///     storage_options: How to open the store of a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///     store: A store of obstore; paths are relative to it.
///     encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
///         function that returns the PEM text of an id.
///     remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
///         offset is read once, from ``paths`` if it is there. ``storage_options`` are those of the URLs,
///         and ``store`` is that of ``remote``.
///     remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
///         ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
///         partitions in the log directory, if any.
///
/// Raises:
///     KbatError: Bytes that Kafka cannot decode either. The output up to them was written.
///     OSError: A file can't be read.
///     ValueError: An unknown decoder or format, or the name of an index without a base offset.
#[pyfunction]
#[pyo3(
    signature = (paths, write, note, *, contents=false, deep=false, skip_record_metadata=false, verify_index_only=false, index_sanity_check=false, max_message_size=5_242_880, max_bytes=None, decoder="text", output_format="kafka", limits=None, **stores),
    text_signature = "(paths, write, note, *, contents=False, deep=False, skip_record_metadata=False, verify_index_only=False, index_sanity_check=False, max_message_size=5242880, max_bytes=None, decoder='text', output_format='kafka', limits=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "the keyword arguments of the Python signature"
)]
fn dump(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    write: Py<PyAny>,
    note: Py<PyAny>,
    contents: bool,
    deep: bool,
    skip_record_metadata: bool,
    verify_index_only: bool,
    index_sanity_check: bool,
    max_message_size: u64,
    max_bytes: Option<u64>,
    decoder: &str,
    output_format: &str,
    limits: Option<PyLimits>,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let options = Options {
        contents,
        deep,
        skip_record_metadata,
        verify_index_only,
        index_sanity_check,
        max_message_size,
        max_bytes,
        decoder: decoder_of(decoder)?,
        format: format_of(output_format)?,
        limits: or_default(limits),
    };
    let stores = StoreArguments::new("dump", stores)?;
    let paths = paths.into_iter().map(|path| stores.locate(py, path)).collect::<PyResult<Vec<_>>>()?;
    run(py, None, |caught, _| {
        let (mut out, mut notes) = (Callback::new(write, caught), Callback::new(note, caught));
        dump_files(&paths, &options, &mut out, &mut notes)
    })
}

fn decoder_of(name: &str) -> PyResult<Decoder> {
    if name == "text" {
        return Ok(Decoder::Text);
    }
    family_of(name).map(Decoder::Internal).ok_or_else(|| {
        let message = "decoder must be 'text', 'offsets', 'transaction_log', 'cluster_metadata', \
                       'share_group_state' or 'remote_log_metadata'";
        PyValueError::new_err(format!("{message}, not '{name}'"))
    })
}

fn format_of(name: &str) -> PyResult<Format> {
    match name {
        "kafka" => Ok(Format::Kafka),
        "table" => Ok(Format::Table),
        "jsonl" => Ok(Format::Jsonl),
        _ => Err(PyValueError::new_err(format!("output_format must be 'kafka', 'table' or 'jsonl', not '{name}'"))),
    }
}

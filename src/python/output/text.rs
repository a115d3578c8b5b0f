//! The submodule `kbat._core.text`: records as text.

use std::str::FromStr;

use pyo3::prelude::*;

use crate::error::Error;
use crate::python::arrow::scan::class::PyScan;
use crate::python::arrow::scan::progress::{PassProgress, Waiting};
use crate::python::runtime::callback::Callback;
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::progress::run;
use crate::python::runtime::submodule::add_submodule;
use crate::text::{Pattern, TextOptions, Written, write_watched};

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "text", "Write records as JSON lines, CSV and other text.")?;
    module.add_function(wrap_pyfunction!(write_records, &module)?)
}

/// Write the records of a scan as text, on one thread. A batch is written completely or not at all.
///
/// Args:
///     scan: A scan of records from :func:`kbat.scan`. Its columns have no effect.
///     write: Called with a large piece of the output, as bytes.
///     output_format: ``jsonl``, ``csv``, ``text`` for lines that people read, ``raw`` for the bytes of the values, or
///         a format string like that of ``kcat``: ``%t`` topic, ``%p`` partition, ``%o`` offset, ``%T`` timestamp,
///         ``%k`` key, ``%K`` its length, ``%s`` value, ``%S`` its length, ``%R`` the same as four bytes, ``%h``
///         headers, ``%%``, and a backslash before ``n``, ``r``, ``t``, a backslash, or ``x`` and two hexadecimal
///         digits.
///     key: The form of keys: ``json``, ``text``, ``hex``, ``base64``, or ``auto``, which suits the format.
///     value: The form of values.
///     key_pattern: Write only records whose whole key matches this regular expression, in the syntax of Rust's crate
///         ``regex``.
///     value_pattern: Write only records in whose value this regular expression is found.
///     headers: Write only records that have all of these headers: pairs of a name, and a value or None for any value.
///     fixed_strings: Whether both patterns are texts instead of regular expressions.
///     limit: Largest number of records to write. Default: all.
///     terminal: Whether the output is a terminal: characters that would change it are escaped, and each batch is
///         written at once.
///     header: Whether CSV begins with the names of the columns.
///     batches: Whether JSON lines have a line for each batch before those of its records, with which
///         ``kbat import`` makes the same batch again. Scan with ``include_control=True`` for the markers of
///         transactions.
///     progress: Called periodically with the number of bytes processed and the bytes of all sources; True for a
///         progress bar, if ``rich`` is installed.
///
/// Returns:
///     The number of records written, and the offset after the last batch that was read, of which some records may
///     not have been written; None before the first batch.
///
/// Raises:
///     ValueError: An unknown format or form, a pattern that is not a regular expression, a scan of another view, or
///         lines of batches in another format or without aborted transactions.
///     KbatError: Corruption. Everything before it has been written.
///     OSError: A file can't be read.
#[pyfunction]
#[pyo3(signature = (scan, write, *, output_format="jsonl", key="auto", value="auto", key_pattern=None, value_pattern=None, headers=None, fixed_strings=false, limit=None, terminal=false, header=true, batches=false, progress=None))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "the keyword arguments of the Python signature"
)]
fn write_records(
    py: Python<'_>,
    scan: &Bound<'_, PyScan>,
    write: Py<PyAny>,
    output_format: &str,
    key: &str,
    value: &str,
    key_pattern: Option<&str>,
    value_pattern: Option<&str>,
    headers: Option<Vec<(String, Option<String>)>>,
    fixed_strings: bool,
    limit: Option<u64>,
    terminal: bool,
    header: bool,
    batches: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(u64, Option<i64>)> {
    let scan = scan.get();
    let (sources, options) = scan.records()?;
    let text = TextOptions {
        format: parsed(py, output_format)?,
        key: parsed(py, key)?,
        value: parsed(py, value)?,
        limit,
        is_terminal: terminal,
        csv_header: header,
        batches,
        ..conditions(py, key_pattern, value_pattern, headers, fixed_strings)?
    };
    let waiting = Waiting::with(PassProgress::of(py, progress, || scan.byte_len())?);
    let callback = waiting.callback();
    let mut written = Written::default();
    let result = run(py, None, |caught, _| {
        write_watched(sources, &options, &text, callback, &mut Callback::new(write, caught), &mut written)
    });
    scan.share(py, written.stats)?;
    if let Some(raised) = waiting.raised() {
        return Err(raised);
    }
    result?;
    waiting.end(py)?;
    Ok((written.stats.records, written.next_offset))
}

/// Options with only the conditions on records set.
pub(crate) fn conditions(
    py: Python<'_>,
    key_pattern: Option<&str>,
    value_pattern: Option<&str>,
    headers: Option<Vec<(String, Option<String>)>>,
    fixed_strings: bool,
) -> PyResult<TextOptions> {
    let key_pattern = key_pattern.map(|key| if fixed_strings { Ok(Pattern::equal(key)) } else { Pattern::whole(key) });
    let find = if fixed_strings { Pattern::containing } else { Pattern::found };
    let headers = headers.unwrap_or_default().into_iter();
    Ok(TextOptions {
        key_pattern: key_pattern.transpose().or_raise(py)?,
        value_pattern: value_pattern.map(find).transpose().or_raise(py)?,
        headers: headers.map(|(name, value)| (name.into_bytes(), value.map(String::into_bytes))).collect(),
        ..TextOptions::default()
    })
}

fn parsed<T: FromStr<Err = Error>>(py: Python<'_>, name: &str) -> PyResult<T> {
    name.parse::<T>().or_raise(py)
}

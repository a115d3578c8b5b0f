//! The extension module `kbat._core` (feature `python`). It only translates arguments and results, and releases the
//! GIL around calls of the core.
//!
//! Every class is frozen and can be shared between threads.
//!
//! A module with classes or functions of Python has a `register`, which adds them to the submodule of its name; only
//! `batch`, and `locations` for segments, add to `kbat._core` itself. `_core` calls each of them once.

#![allow(clippy::doc_markdown, clippy::doc_link_with_quotes, reason = "these are Python docstrings")]
#![allow(clippy::needless_pass_by_value, reason = "pyo3 passes arguments by value")]

mod arguments;
mod arrow;
mod batch;
mod build;
mod files;
mod html;
mod locations;
mod log;
mod output;
mod plan;
mod runtime;
mod tools;

use pyo3::prelude::*;

/// Kafka's record format, read and written without a broker: the compiled half of the package `kbat`.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    runtime::allocator::configure();
    runtime::interrupt::install();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<arguments::limits::PyLimits>()?;
    batch::register(module)?;
    arrow::register(module)?;
    arrow::encode::register(module)?;
    build::register(module)?;
    files::register(module)?;
    locations::register(module)?;
    log::register(module)?;
    log::writer::register(module)?;
    output::dump::register(module)?;
    output::parquet::register(module)?;
    output::text::register(module)?;
    plan::register(module)?;
    plan::sink::register(module)?;
    tools::repair::register(module)?;
    tools::restore::register(module)?;
    tools::rewrite::register(module)
}

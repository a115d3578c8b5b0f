//! The extension module `kbat._core` (feature `python`). It only translates arguments and results, and releases the
//! GIL around calls of the core.
//!
//! Every class is frozen and can be shared between threads.

#![allow(clippy::doc_markdown, clippy::doc_link_with_quotes, reason = "these are Python docstrings")]
#![allow(clippy::needless_pass_by_value, reason = "pyo3 passes arguments by value")]

mod allocator;
mod arrow_batch;
mod arrow_input;
mod arrow_module;
mod batch;
mod build;
mod builder;
mod capsule;
mod checkpoints;
mod control;
mod convert;
mod dump;
mod edit;
mod encode;
mod errors;
mod exclusive;
mod files;
mod html;
mod indexes;
mod interrupt;
mod limits;
mod lists;
mod location;
mod log;
mod log_directory;
mod output;
mod parquet;
mod partition;
mod partitioner;
mod pickle;
mod places;
mod plan;
mod progress;
mod read_options;
mod record;
mod record_writer;
mod repair;
mod requested_schema;
mod restore;
mod rewrite;
mod scan;
mod scan_class;
mod scan_columns;
mod scan_pass;
mod scan_progress;
mod scan_source;
mod segment;
mod segments;
mod sink;
mod source;
mod stored_file;
mod sums;
mod text;
mod time;
mod validate;
mod warning;
mod writer;

use pyo3::prelude::*;

/// Kafka's record format, read and written without a broker: the compiled half of the package `kbat`.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    allocator::configure();
    interrupt::install();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<batch::PyBatch>()?;
    module.add_class::<batch::PyBatchIterator>()?;
    module.add_class::<control::PyControlRecord>()?;
    module.add_class::<limits::PyLimits>()?;
    module.add_class::<record::PyRecord>()?;
    module.add_class::<batch::PyRecordIterator>()?;
    module.add_class::<segments::PySegmentFile>()?;
    module.add_function(wrap_pyfunction!(batch::read::read_batches, module)?)?;
    module.add_function(wrap_pyfunction!(segments::find_segments, module)?)?;
    // not add_function, which would make them public
    module.setattr("_record", wrap_pyfunction!(pickle::record, module)?)?;
    module.setattr("_batch", wrap_pyfunction!(pickle::batch, module)?)?;
    build::register(module)?;
    dump::register(module)?;
    files::register(module)?;
    arrow_module::register(module)?;
    log::register(module)?;
    repair::register(module)?;
    restore::register(module)?;
    rewrite::register(module)?;
    parquet::register(module)?;
    plan::register(module)?;
    sink::register(module)?;
    text::register(module)?;
    writer::register(module)?;
    Ok(())
}

//! `kbat.scan`.

pub(crate) mod capsule;
pub(crate) mod class;
pub(crate) mod columns;
pub(crate) mod pass;
pub(crate) mod progress;
pub(crate) mod source;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrow::{Decoder, Isolation, OnCorrupt, ScanOptions, ScanSource, TimestampUnit};
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::location::StoreArguments;
use crate::python::arguments::names::family_of;
use crate::python::arguments::time::bound;
use crate::python::arrow::scan::class::PyScan;
use crate::python::arrow::scan::columns::{ScanRows, with_columns};
use crate::python::arrow::scan::source::sources;
use crate::python::locations::segments::selection;

/// Read records, batches or segments of buffers, files and directories as Arrow columns.
///
/// Nothing is read until the result is used. Each use starts a new pass, in Rust, with the GIL released. One
/// Arrow batch is in memory at a time; with several threads, batches of up to 256 MiB wait for their turn.
///
/// Args:
///     source: A bytes-like object, the path of a ``.log`` file, a partition directory or a log directory, a pattern
///         such as ``/data/orders-*``, a part of a file as returned by :func:`split`, or a list of these. A segment
///         that is listed twice is read once. Paths may be URLs.
///     columns: Names of the columns, in order. Other columns cost nothing. Records: default ``key value topic
///         partition offset timestamp timestamp_type headers``; also ``base_offset position partition_leader_epoch
///         producer_id producer_epoch sequence is_transactional compression magic batch_size segment``. Batches:
///         default all fields of the header; also ``crc_ok uncompressed_size ratio``, which read the whole batch.
///         Segments: default all except ``batch_count``, which reads every header. Internal: default ``topic
///         partition offset timestamp record_type type_id version key value is_tombstone reason``; also ``is_control
///         schema_id`` and those of records.
///     view: ``"records"``: one row per record. ``"batches"``: one row per batch, control batches included, from
///         headers only. ``"segments"``: one row per ``.log`` file. ``"internal"``: one row per record of Kafka's
///         internal topics, of ``_schemas`` and of ``.checkpoint`` files, with key and value as JSON text; other topics
///         are not read. ``reason`` is why a key or value could not be decoded, such as a record type of a newer Kafka.
///     decoder: How ``view="internal"`` decodes. ``"auto"``: by the topic's name. ``"offsets"``,
///         ``"transaction_log"``, ``"share_group_state"``, ``"cluster_metadata"``, ``"remote_log_metadata"``: all
///         topics as that internal topic. ``"json"``: all topics as JSON, text as strings, other bytes as
///         ``{"base64": ...}``, and values in Confluent's wire format with the id of their schema, which is also the
///         column ``schema_id``.
///     topics: Read only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
///     partitions: Read only partitions with these numbers. Default: all.
///     replicas: What to do if a partition is in several directories, as in the log directories of several brokers:
///         ``"error"`` raises an error, ``"longest"`` reads the directory with the largest range of offsets.
///     start_offset: First offset to read. By default, this includes records that a broker has deleted but whose
///         segment still exists; start at ``PartitionLog.start_offset`` to skip them.
///     end_offset: Read up to, but not including, this offset.
///     start_timestamp: Read records with this timestamp or a later one: milliseconds since the epoch, a
///         ``datetime`` with a time zone, or ISO 8601 text with one. Segments and batches that are older according
///         to their name, index or header are not read. Records without a timestamp never match a time range.
///     end_timestamp: Read records with a timestamp before this one.
///     isolation: ``"read_committed"`` skips records of aborted transactions and everything from the last stable offset
///         on, as a consumer with that ``isolation.level`` does. Aborted transactions are found from the partition's
///         control records and ``.txnindex`` files; for a buffer or a stand-alone file, from its own control records.
///     include_control: Whether control records are included.
///     check_crc: Whether checksums are verified. A view reads headers, and verifies a batch only if offsets are
///         missing after it, or at the end of a segment, where a length could hide others: select ``crc_ok`` for all.
///     on_corrupt: ``"fail"`` raises at the first corruption. ``"skip"`` drops corrupt batches, continues at the next
///         batch, and counts the losses in ``Scan.stats``. ``"report"`` also emits one row per corruption, with nulls
///         and a last column ``error``: a struct of ``kind message path position length first_offset last_offset``.
///         With ``"fail"``, batches excluded by the bounds are only checksummed beside a gap in the offsets.
///     limits: Bounds on untrusted input.
///     topic: Topic of buffers, and of files outside a ``<topic>-<partition>`` directory. It does not select topics:
///         use ``topics`` for that.
///     partition: Partition number of buffers, and of files outside a ``<topic>-<partition>`` directory.
///     timestamp_unit: ``"ms"`` as in Kafka, or ``"us"`` as in Spark.
///     missing_timestamp: Value of the column ``timestamp``, in milliseconds, for records without a timestamp.
///         Default: null. Column ``timestamp_type`` is 0 for CreateTime, 1 for LogAppendTime, -1 for magic 0, which
///         has no timestamps.
///     binary_view: Whether keys, values and header values are ``binary_view``. Those of uncompressed batches are then
///         not copied, and the Arrow data keeps the buffers that were read.
///     max_rows: Maximum rows of an Arrow batch.
///     max_bytes: Target size of an Arrow batch in bytes of key, value and header data. An Arrow batch ends at the next
///         Kafka batch boundary.
///     leave_page_cache: Whether to drop the pages that reading adds to the page cache, for machines on which a
///         broker runs. Pages that were cached before are kept. Slower; no effect outside Linux.
///     storage_options: How to open the store of a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///     store: A store of obstore; paths are relative to it.
///     encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
///         function that returns the PEM text of an id.
///     remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
///         offset is read once, from ``source`` if it is there. ``storage_options`` are those of the URLs,
///         and ``store`` is that of ``remote``.
///     remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
///         ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
///         partitions in the log directory, if any.
///
/// Raises:
///     OSError: The path can't be read.
///     ValueError: An unknown column, topic or partition, an argument without effect, a partition in several
///         directories, or a directory with files but no segment.
///
/// Example:
///     >>> kbat.scan("topic-0/", columns=["offset", "timestamp", "value"]).to_polars()
#[pyfunction]
#[pyo3(
    signature = (source, *extra, columns=None, view="records", decoder="auto", topics=None, partitions=None, replicas="error", start_offset=None, end_offset=None, start_timestamp=None, end_timestamp=None, isolation="read_uncommitted", include_control=false, check_crc=true, on_corrupt="fail", limits=None, topic=None, partition=None, timestamp_unit="ms", missing_timestamp=None, binary_view=false, max_rows=16384, max_bytes=1_048_576, leave_page_cache=false, **stores),
    text_signature = "(source, *, columns=None, view='records', decoder='auto', topics=None, partitions=None, replicas='error', start_offset=None, end_offset=None, start_timestamp=None, end_timestamp=None, isolation='read_uncommitted', include_control=False, check_crc=True, on_corrupt='fail', limits=None, topic=None, partition=None, timestamp_unit='ms', missing_timestamp=None, binary_view=False, max_rows=16384, max_bytes=1048576, leave_page_cache=False, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "the keyword arguments of the Python signature"
)]
pub(crate) fn scan(
    source: &Bound<'_, PyAny>,
    extra: &Bound<'_, PyTuple>,
    columns: Option<&Bound<'_, PyAny>>,
    view: &str,
    decoder: &str,
    topics: Option<&Bound<'_, PyAny>>,
    partitions: Option<&Bound<'_, PyAny>>,
    replicas: &str,
    start_offset: Option<i64>,
    end_offset: Option<i64>,
    start_timestamp: Option<&Bound<'_, PyAny>>,
    end_timestamp: Option<&Bound<'_, PyAny>>,
    isolation: &str,
    include_control: bool,
    check_crc: bool,
    on_corrupt: &str,
    limits: Option<PyLimits>,
    topic: Option<&str>,
    partition: Option<i32>,
    timestamp_unit: &str,
    missing_timestamp: Option<i64>,
    binary_view: bool,
    max_rows: usize,
    max_bytes: usize,
    leave_page_cache: bool,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyScan> {
    if !extra.is_empty() {
        let message = "scan() takes one positional argument, the source; pass the others by keyword, such as \
                       columns=[\"offset\"]; pass several sources as a list";
        return Err(PyTypeError::new_err(message));
    }
    if max_rows == 0 {
        return Err(PyValueError::new_err("max_rows must be 1 or more"));
    }
    let options = ScanOptions {
        timestamp_unit: choice(
            "timestamp_unit",
            timestamp_unit,
            &[("ms", TimestampUnit::Millisecond), ("us", TimestampUnit::Microsecond)],
        )?,
        start_offset,
        end_offset,
        start_timestamp: start_timestamp.map(bound).transpose()?,
        end_timestamp: end_timestamp.map(bound).transpose()?,
        isolation: choice(
            "isolation",
            isolation,
            &[("read_uncommitted", Isolation::ReadUncommitted), ("read_committed", Isolation::ReadCommitted)],
        )?,
        include_control,
        check_crc,
        decoder: decoder_of(decoder)?,
        on_corrupt: choice(
            "on_corrupt",
            on_corrupt,
            &[("fail", OnCorrupt::Fail), ("skip", OnCorrupt::Skip), ("report", OnCorrupt::Report)],
        )?,
        limits: or_default(limits),
        missing_timestamp,
        binary_view,
        max_rows,
        max_bytes,
        leave_page_cache,
        ..ScanOptions::default()
    };
    check_bounds(&options)?;
    let (options, view) = with_columns(options, view, columns)?;
    let stores = StoreArguments::new("scan", stores)?;
    let sources = sources(source, &selection(source.py(), topics, partitions, replicas)?, &stores)?;
    check_names(&sources, topic, partition)?;
    let mut sources: Vec<_> = sources.into_iter().map(|source| source.or_topic_partition(topic, partition)).collect();
    match view {
        ScanRows::Internal if options.decoder == Decoder::ByTopic => sources = internal(sources)?,
        ScanRows::Internal => {}
        _ if options.decoder == Decoder::ByTopic => {}
        _ => return Err(PyValueError::new_err("decoder applies to view=\"internal\" only")),
    }
    Ok(PyScan::new(sources, view, options))
}

/// The sources of internal topics. Rejects sources of which none is internal, and those whose topic is unknown.
fn internal(sources: Vec<ScanSource>) -> PyResult<Vec<ScanSource>> {
    let (internal, others): (Vec<_>, Vec<_>) = sources.into_iter().partition(ScanSource::is_internal);
    if others.iter().any(|other| other.origin.topic.is_none()) {
        let message = "the topic of a source is unknown: name it with topic, such as topic=\"__consumer_offsets\", or \
                       choose a decoder";
        return Err(PyValueError::new_err(message));
    }
    match others.first().and_then(|other| other.origin.topic.as_deref()) {
        Some(topic) if internal.is_empty() => Err(PyValueError::new_err(format!(
            "no source is an internal topic; the first topic is {topic:?}; to show the records of any topic as JSON, \
             write decoder=\"json\""
        ))),
        _ => Ok(internal),
    }
}

fn decoder_of(name: &str) -> PyResult<Decoder> {
    match name {
        "auto" => Ok(Decoder::ByTopic),
        "json" => Ok(Decoder::Json),
        _ => family_of(name).map(Decoder::Internal).ok_or_else(|| {
            PyValueError::new_err(format!(
                "decoder must be \"auto\", \"offsets\", \"transaction_log\", \"share_group_state\", \
                 \"cluster_metadata\", \"remote_log_metadata\" or \"json\", not {name:?}"
            ))
        }),
    }
}

/// Rejects bounds that must be a mistake.
fn check_bounds(options: &ScanOptions) -> PyResult<()> {
    for (name, offset) in [("start_offset", options.start_offset), ("end_offset", options.end_offset)] {
        if let Some(offset) = offset.filter(|offset| *offset < 0) {
            let message = format!("{name} {offset} is negative: omit it to read from the start or to the end");
            return Err(PyValueError::new_err(message));
        }
    }
    Ok(())
}

/// Rejects names that would have no effect, because the caller may have meant a filter.
fn check_names(sources: &[ScanSource], topic: Option<&str>, partition: Option<i32>) -> PyResult<()> {
    if sources.is_empty() {
        return Ok(());
    }
    if let Some(topic) = topic.filter(|_| sources.iter().all(|source| source.origin.topic.is_some())) {
        let message = format!(
            "topic={topic:?} has no effect: every directory already names its topic; to read one topic, write \
             topics=[{topic:?}]"
        );
        return Err(PyValueError::new_err(message));
    }
    if let Some(partition) = partition.filter(|_| sources.iter().all(|source| source.origin.partition.is_some())) {
        let message = format!(
            "partition={partition} has no effect: every directory already names its partition; to read one partition, \
             write partitions=[{partition}]"
        );
        return Err(PyValueError::new_err(message));
    }
    Ok(())
}

/// Parses the value of an argument by its name.
fn choice<T: Copy>(argument: &str, name: &str, choices: &[(&str, T)]) -> PyResult<T> {
    if let Some((_, value)) = choices.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let names: Vec<String> = choices.iter().map(|(known, _)| format!("{known:?}")).collect();
    Err(PyValueError::new_err(format!("{argument} must be {}, not {name:?}", names.join(" or "))))
}

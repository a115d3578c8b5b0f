//! The iterator over a batch's records, which parses them in chunks with the GIL released.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

use crate::compression::{Payload, Scratch};
use crate::error::{Error, Result};
use crate::format::bookmark::Bookmark;
use crate::format::records::Records;
use crate::io::SharedBytes;
use crate::python::batch::PyBatch;
use crate::python::batch::record::{ByteSpan, PyRecord, RecordChunk, RecordSpans, SMALL_BATCH_LEN};

/// Records parsed at a time: enough to outweigh the cost of releasing the GIL, few enough that keeping one record
/// keeps little memory.
const CHUNK: usize = 128;

struct IteratorState {
    chunk: Option<Arc<RecordChunk>>,
    /// Index of the next record in the chunk.
    next: usize,
    bookmark: Option<Bookmark>,
    /// Raised after the records before it.
    error: Option<Error>,
    ended: bool,
}

/// Iterates over the records of a batch.
#[pyclass(frozen, name = "RecordIterator", module = "kbat")]
pub(crate) struct PyRecordIterator {
    batch: Py<PyBatch>,
    /// The bytes that spans refer to: the batch's source, or the decompressed records.
    bytes: SharedBytes,
    /// The part of the bytes that contains the records.
    payload: ByteSpan,
    fault: Option<Box<crate::compression::CodecFault>>,
    is_control: bool,
    /// Whether the batch is uncompressed and so small that it is parsed without releasing the GIL.
    small: bool,
    state: Mutex<IteratorState>,
}

/// Runs `work` with the GIL released, unless the batch is small and not compressed.
fn detach_unless<T: Send>(small: bool, py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    if small { work() } else { py.detach(work) }
}

/// The decompressed bytes of a batch and the position of its records.
type OpenedBatch = (SharedBytes, ByteSpan, Option<Box<crate::compression::CodecFault>>, bool);

fn open(batch: &PyBatch) -> Result<OpenedBatch> {
    let core = batch.core()?;
    let settings = batch.settings();
    if settings.check_crc {
        core.verify_crc()?;
    }
    let shared = batch.shared();
    if !core.attributes().is_compressed() {
        let mut scratch = Scratch::new();
        let Payload { bytes, fault } = core.payload(&mut scratch, &settings.limits)?;
        let span = ByteSpan::of(bytes, (*shared).as_ref());
        return Ok((shared, span, fault, core.is_control()));
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let Payload { bytes, fault } = core.payload(scratch, &settings.limits)?;
        let span = ByteSpan { start: 0, len: bytes.len() };
        let bytes: SharedBytes = Arc::new(scratch.take(span.len, KEPT_SCRATCH_LEN));
        Ok((bytes, span, fault, core.is_control()))
    })
}

/// Maximum bytes of the scratch that a thread keeps between batches.
const KEPT_SCRATCH_LEN: usize = 4 << 20;

thread_local! {
    // creating a codec's context costs more than a small batch; the records are copied because they may outlive the
    // scratch
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

impl PyRecordIterator {
    pub(crate) fn new(batch: &Bound<'_, PyBatch>) -> PyResult<Self> {
        let py = batch.py();
        let inner = batch.get();
        let small = inner.len() <= SMALL_BATCH_LEN && inner.is_plain();
        let (bytes, payload, fault, is_control) =
            detach_unless(small, py, || open(inner)).map_err(|error| inner.raise(py, error))?;
        let state = IteratorState { chunk: None, next: 0, bookmark: None, error: None, ended: false };
        Ok(Self { batch: batch.clone().unbind(), bytes, payload, fault, is_control, small, state: Mutex::new(state) })
    }

    /// Parses as much of the next chunk as possible.
    fn parse(&self, batch: &PyBatch, state: &mut IteratorState, spans: &mut Vec<RecordSpans>) -> Result<()> {
        let whole: &[u8] = (*self.bytes).as_ref();
        let core = batch.core()?;
        let payload = Payload { bytes: self.payload.get(whole), fault: self.fault.clone() };
        let settings = batch.settings();
        let check_records = settings.check_crc && core.is_legacy_wrapper();
        let mut records = match &state.bookmark {
            None => Records::new(&core, payload, &settings.limits)?,
            Some(bookmark) => Records::resumed(&core, payload, &settings.limits, bookmark)?,
        };
        while spans.len() < CHUNK {
            let Some(record) = records.next() else {
                state.ended = true;
                break;
            };
            let record = record?;
            if check_records {
                record.verify_crc()?;
            }
            record.headers().verify()?;
            spans.push(RecordSpans::of(&record, whole));
        }
        state.bookmark = Some(records.bookmark());
        Ok(())
    }

    fn refill(&self, batch: &PyBatch, state: &mut IteratorState) {
        if state.ended {
            state.chunk = None;
            return;
        }
        let mut spans = Vec::with_capacity(if self.small { 4 } else { CHUNK });
        if let Err(error) = self.parse(batch, state, &mut spans) {
            state.error = Some(error);
            state.ended = true;
        }
        state.next = 0;
        let path = batch.path().filter(|_| self.is_control).map(Path::to_path_buf);
        let bytes = Arc::clone(&self.bytes);
        state.chunk = Some(Arc::new(RecordChunk { bytes, spans, is_control: self.is_control, path }));
    }
}

impl IteratorState {
    fn take(&mut self) -> Option<PyRecord> {
        let chunk = self.chunk.as_ref()?;
        let index = self.next;
        if index >= chunk.spans.len() {
            return None;
        }
        self.next = index.wrapping_add(1);
        Some(PyRecord { chunk: Arc::clone(chunk), index })
    }
}

#[pymethods]
impl PyRecordIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyRecord>> {
        let quick = match self.state.try_lock() {
            Ok(mut state) => match state.take() {
                None if state.ended && state.error.is_none() => return Ok(None),
                quick => quick,
            },
            Err(_) => None,
        };
        if quick.is_some() {
            return Ok(quick);
        }
        let next = detach_unless(self.small, py, || {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            // another thread may have refilled it in the meantime
            if let Some(record) = state.take() {
                return Ok(Some(record));
            }
            if let Some(error) = state.error.take() {
                return Err(error);
            }
            self.refill(self.batch.get(), &mut state);
            match state.take() {
                Some(record) => Ok(Some(record)),
                None => state.error.take().map_or(Ok(None), Err),
            }
        });
        next.map_err(|error| self.batch.get().raise(py, error))
    }
}

//! Keys, values and headers of records as arguments.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::format::record::NewHeader;
use crate::io::SharedBytes;
use crate::python::arguments::source::shared_bytes;

/// Runs `work` on the bytes of an optional bytes-like object, without a copy if it is `bytes`.
pub(crate) fn borrowed<T>(
    object: &Bound<'_, PyAny>,
    what: &str,
    work: impl FnOnce(Option<&[u8]>) -> PyResult<T>,
) -> PyResult<T> {
    if object.is_none() {
        return work(None);
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return work(Some(bytes.as_bytes()));
    }
    match shared_bytes(object)? {
        Some(bytes) => work(Some((*bytes).as_ref())),
        None => Err(PyTypeError::new_err(format!(
            "{what} must be a bytes-like object or None, not {}",
            object.get_type().name()?
        ))),
    }
}

/// A header that owns its bytes.
pub(crate) struct OwnedHeader {
    key: SharedBytes,
    value: Option<SharedBytes>,
}

impl OwnedHeader {
    /// The header as a builder takes it.
    pub(crate) fn as_new(&self) -> NewHeader<'_> {
        ((*self.key).as_ref(), self.value.as_ref().map(|value| (**value).as_ref()))
    }
}

/// Copies or shares the keys and values of headers: a dictionary, or pairs.
pub(crate) fn own_headers(headers: &Bound<'_, PyAny>) -> PyResult<Vec<OwnedHeader>> {
    let mut owned = Vec::new();
    let pairs = match headers.cast::<PyDict>() {
        Ok(dictionary) => dictionary.items().into_any(),
        Err(_) => headers.clone(),
    };
    for pair in pairs.try_iter()? {
        let (key, value) = header_pair(&pair?)?;
        let key: SharedBytes = match key.cast::<PyString>() {
            Ok(text) => std::sync::Arc::new(text.to_str()?.as_bytes().to_vec()),
            Err(_) => shared_bytes(&key)?.ok_or_else(|| wrong_type("header key", "str or bytes-like", &key))?,
        };
        let value = if value.is_none() {
            None
        } else {
            Some(shared_bytes(&value)?.ok_or_else(|| wrong_type("header value", "bytes-like or None", &value))?)
        };
        owned.push(OwnedHeader { key, value });
    }
    Ok(owned)
}

/// Key and value of a header: a tuple or list of two, or a dictionary as Arrow's `to_pylist` returns it.
fn header_pair<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    if let Ok(dictionary) = pair.cast::<PyDict>()
        && let (Some(key), Some(value)) = (dictionary.get_item("key")?, dictionary.get_item("value")?)
        && dictionary.len() == 2
    {
        return Ok((key, value));
    }
    if !(pair.is_instance_of::<PyTuple>() || pair.is_instance_of::<PyList>()) {
        return Err(wrong_type("a header", "a pair of key and value", pair));
    }
    if pair.len()? != 2 {
        return Err(PyValueError::new_err(format!(
            "a header must be a pair of key and value, not {} items",
            pair.len()?
        )));
    }
    Ok((pair.get_item(0)?, pair.get_item(1)?))
}

fn wrong_type(what: &str, wanted: &str, object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{what} must be {wanted}, not {name}"))
}

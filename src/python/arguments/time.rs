//! Time arguments: milliseconds, a `datetime` with a time zone, or ISO 8601 text with one.

use std::ops::Range;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::epoch::{SECONDS, smaller_unit};

/// Seconds since the epoch from 2017 to 2033. Writers and lookups reject only these, because a record may have any
/// timestamp.
const SECONDS_NOW: Range<i64> = 1_500_000_000..2_000_000_000;

/// What becomes of fractions of a millisecond.
#[derive(Clone, Copy)]
enum Rounding {
    /// The first millisecond that is not before the time.
    Up,
    Down,
}

/// Converts a time that is searched to milliseconds since the epoch; fractions of a millisecond round up. Rejects
/// numbers that look like seconds.
pub(crate) fn milliseconds(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    not_seconds(instant(object)?, &SECONDS_NOW)
}

/// Like [`milliseconds`], for the timestamp of a record: fractions round down, as in a column and in Java.
pub(crate) fn record_timestamp(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    not_seconds(rounded(object, Rounding::Down)?, &SECONDS_NOW)
}

/// Like [`milliseconds`], for values computed by a filter: any number is accepted as milliseconds.
pub(crate) fn instant(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    rounded(object, Rounding::Up)
}

fn rounded(object: &Bound<'_, PyAny>, rounding: Rounding) -> PyResult<i64> {
    if object.is_instance_of::<PyInt>() || object.hasattr("__index__")? {
        return object.extract();
    }
    let module = object.py().import("datetime")?;
    let class = module.getattr("datetime")?;
    if object.is_instance_of::<PyString>() {
        if object.call_method0("isdigit")?.is_truthy()? {
            return Err(PyTypeError::new_err("a timestamp in milliseconds must be an int, not text"));
        }
        let parsed = class.call_method1("fromisoformat", (object,)).map_err(|_| {
            let text = object.repr().map_or_else(|_| String::new(), |text| text.to_string());
            let message =
                format!("{text} is not a time: write ISO 8601 with a time zone, such as 2026-11-22T10:00:00Z");
            PyValueError::new_err(message)
        })?;
        if parsed.getattr("tzinfo")?.is_none() {
            let (text, moment) = (object.repr()?, parsed.call_method0("isoformat")?);
            let message = format!("{text} has no time zone; for UTC write {moment}Z");
            return Err(PyValueError::new_err(message));
        }
        return of_datetime(&parsed, &module, rounding);
    }
    if !object.is_instance(&class)? {
        let message = format!(
            "a timestamp must be an int in milliseconds since the epoch, a datetime, or ISO 8601 text, not {}",
            object.get_type().name()?
        );
        return Err(PyTypeError::new_err(message));
    }
    of_datetime(object, &module, rounding)
}

fn of_datetime(datetime: &Bound<'_, PyAny>, module: &Bound<'_, PyModule>, rounding: Rounding) -> PyResult<i64> {
    if datetime.getattr("tzinfo")?.is_none() {
        let message = "a datetime without a time zone is ambiguous: set one, such as tzinfo=datetime.timezone.utc";
        return Err(PyValueError::new_err(message));
    }
    let utc = module.getattr("timezone")?.getattr("utc")?;
    let epoch = module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    let millisecond = module.getattr("timedelta")?.call1((0, 0, 0, 1))?;
    match rounding {
        Rounding::Up => epoch.sub(datetime)?.floor_div(millisecond)?.extract::<i64>().map(i64::saturating_neg),
        Rounding::Down => datetime.sub(epoch)?.floor_div(millisecond)?.extract(),
    }
}

/// Like [`milliseconds`], for bounds of what is read. Refuses microseconds and nanoseconds too.
pub(crate) fn bound(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    let number = not_seconds(instant(object)?, &SECONDS)?;
    match smaller_unit(number) {
        None => Ok(number),
        Some((unit, milliseconds)) => Err(PyValueError::new_err(format!(
            "timestamp {number} looks like {unit} since the epoch: write milliseconds, {milliseconds}"
        ))),
    }
}

/// Rejects numbers that look like seconds instead of milliseconds.
fn not_seconds(number: i64, seconds: &Range<i64>) -> PyResult<i64> {
    if seconds.contains(&number) {
        let message = format!(
            "timestamp {number} looks like seconds since the epoch: write milliseconds, {}",
            number.saturating_mul(1000)
        );
        return Err(PyValueError::new_err(message));
    }
    Ok(number)
}

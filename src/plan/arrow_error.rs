//! Errors of the Arrow crates.

use arrow_schema::ArrowError;

use crate::error::Error;

/// An error of an Arrow crate, which can only be a mistake in kbat.
pub(crate) fn arrow_error(error: &ArrowError) -> Error {
    Error::other(error.to_string())
}

//! Values that travel between the driver and the tasks as bytes.
//!
//! The version of kbat comes first: an older one would drop the fields that it does not know, and read other rows.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The bytes of a value for [`from_bytes`].
pub(crate) fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    let mut bytes = format!("{VERSION}\n").into_bytes();
    serde_json::to_writer(&mut bytes, value).map_err(Error::other)?;
    Ok(bytes)
}

/// The value that [`to_bytes`] wrote; `what` says in errors what it is.
///
/// # Errors
/// Bytes of another version of kbat, or other bytes.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    let text = str::from_utf8(bytes).unwrap_or_default();
    let (version, value) = text.split_once('\n').unwrap_or_default();
    let is_version = |text: &str| text.len() < 40 && text.starts_with(|c: char| c.is_ascii_digit());
    if version != VERSION && is_version(version) {
        return Err(Error::argument(format!(
            "kbat: {what} is of kbat {version}, but this is kbat {VERSION}: the driver and the executors need the same version"
        )));
    }
    // no detail: it may quote a secret
    let other = || Error::argument(format!("kbat: these bytes are not {what}"));
    if version == VERSION { serde_json::from_str(value).map_err(|_| other()) } else { Err(other()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_read_by_its_own_version_only() {
        let bytes = to_bytes(&vec![1, 2]).unwrap();
        assert_eq!(from_bytes::<Vec<i32>>(&bytes, "a list").unwrap(), [1, 2]);
        let error = |bytes: &[u8]| from_bytes::<Vec<i32>>(bytes, "a list").unwrap_err().to_string();
        let other = error(b"0.0.9\n[1, 2]");
        assert!(other.starts_with(&format!("kbat: a list is of kbat 0.0.9, but this is kbat {VERSION}: ")), "{other}");
        let own = format!("{VERSION}\n[\"secret\"]");
        for bytes in [&b""[..], b"[1, 2]", b"\xff\n[]", b"x\n[]", own.as_bytes(), VERSION.as_bytes()] {
            assert_eq!(error(bytes), "kbat: these bytes are not a list");
        }
    }
}

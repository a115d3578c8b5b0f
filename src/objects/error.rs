//! Converts the errors of stores.

use std::io::{Error as IoError, ErrorKind as IoErrorKind};

use object_store::Error as StoreError;

use crate::error::Error;

/// Converts the error of a request. Messages contain no secret: requests are named by object, not by signed URL.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn converted(error: StoreError) -> Error {
    let message = described(&error);
    // an upload to a missing bucket fails as the request of a missing object does
    if message.contains("NoSuchBucket") || message.contains("specified bucket does not exist") {
        return Error::from(IoError::new(IoErrorKind::NotFound, "the bucket does not exist"));
    }
    if lacks_listing(&message) {
        return Error::from(IoError::new(IoErrorKind::Unsupported, NO_LISTING));
    }
    let kind = match &error {
        StoreError::NotFound { .. } => return not_found(),
        StoreError::Precondition { .. } => {
            let message = "the object was replaced while it was read: read it again";
            return Error::from(IoError::other(message));
        }
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => IoErrorKind::PermissionDenied,
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => IoErrorKind::Unsupported,
        _ => IoErrorKind::Other,
    };
    let needs_credentials = message.contains("169.254.169.254") || message.contains("metadata.google.internal");
    let message = if needs_credentials { NO_CREDENTIALS.to_owned() } else { message };
    Error::from(IoError::new(kind, message))
}

/// Whether `object_store` has repeated a request for its answer, as far as that may help. It exports no type for this.
pub(super) fn was_repeated(error: &StoreError) -> bool {
    described(error).contains("max_retries: ")
}

/// Whether an HTTP server does not know the method `PROPFIND` for listings.
fn lacks_listing(message: &str) -> bool {
    let statuses = ["status code: 405", "status code: 501"];
    message.contains("Error performing PROPFIND") && statuses.iter().any(|status| message.contains(status))
}

const NO_LISTING: &str = "this server does not list directories, for which it needs WebDAV (PROPFIND): name the URLs of \
     .log files, which need no listing";

/// The error for a missing object. With the number of the system's error, Python raises `FileNotFoundError`.
pub(super) fn not_found() -> Error {
    Error::from(if cfg!(unix) { IoError::from_raw_os_error(ENOENT) } else { IoError::from(IoErrorKind::NotFound) })
}

const ENOENT: i32 = 2;

/// The message of an error and of its causes, each once, without the bodies of responses.
fn described(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let message = inner.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = inner.source();
    }
    let text = without_markup(&text);
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

const MAX_CHARS: usize = 600;
const NO_CREDENTIALS: &str = "no credentials were found: set them in the environment, such as AWS_ACCESS_KEY_ID and \
     AWS_SECRET_ACCESS_KEY, or pass storage_options; a public bucket needs skip_signature=true";

/// Replaces the XML of an answer by the message in it.
fn without_markup(text: &str) -> String {
    let Some((before, rest)) = text.split_once("<?xml").or_else(|| text.split_once("<!")) else {
        return text.to_owned();
    };
    let message = rest.split_once("<Message>").and_then(|(_, rest)| rest.split_once("</Message>"));
    message.map_or_else(|| before.to_owned(), |(message, _)| format!("{before}{message}"))
}

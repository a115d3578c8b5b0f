//! Objects of S3, Google Cloud Storage, Azure and HTTP servers as files in directories.
//!
//! `settings` opens a store for a URL and its options, `shared` opens it again after a fork, `files` lists and opens
//! objects, `ahead` reads ahead, `upload` writes objects, `claim` reserves a prefix for them, and `runtime` waits for
//! requests. HTTP, signatures, most retries and listing are those of the crate `object_store`.

mod ahead;
#[cfg(feature = "python")]
mod claim;
mod error;
mod files;
mod runtime;
mod settings;
mod shared;
#[cfg(feature = "python")]
mod upload;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;

use crate::error::{Error, Result};
use crate::io::Location;
use crate::io::location::split_scheme;
use crate::slices::Slices;
use files::ObjectFiles;
pub use settings::StoreOptions;
use shared::SharedStore;

/// The schemes of URLs that name objects.
pub(crate) const SCHEMES: [&str; 11] =
    ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https", "memory"];

/// The scheme of the URL of an object, in lower case; `s3` for `s3a`, too. `None` for any other path.
#[cfg(feature = "plan")]
pub(crate) fn store_scheme(path: &str) -> Option<&'static str> {
    let (scheme, _) = split_scheme(path)?;
    let known = SCHEMES.into_iter().find(|known| known.eq_ignore_ascii_case(scheme))?;
    Some(if known == "s3a" { "s3" } else { known })
}

impl Location {
    /// Parses a path or a URL: `s3://`, `s3a://`, `gs://`, `az://`, `abfs://`, `abfss://`, `http://`, `https://`,
    /// `memory://` or `file://`.
    ///
    /// Nothing is requested until the location is read. What a listing returns is kept, so that each prefix is listed
    /// once: parse the URL again to see new objects.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for another scheme, a URL without a bucket,
    /// and an unknown or invalid option.
    pub fn parse(text: &str, options: &StoreOptions) -> Result<Self> {
        let lower = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let normal = lower.and_then(|scheme| Some(format!("{scheme}{}", text.get(scheme.len()..)?)));
        let text = normal.as_deref().unwrap_or(text);
        let Some((scheme, rest)) = split_scheme(text) else {
            options.refuse_for_files(text)?;
            return Ok(Self::local(text));
        };
        if scheme == "file" {
            options.refuse_for_files(text)?;
            let path = rest.strip_prefix("localhost").filter(|rest| rest.starts_with('/')).unwrap_or(rest);
            return Ok(Self::local(percent_decoded(&format!("/{}", path.trim_start_matches('/')))));
        }
        if !SCHEMES.contains(&scheme) {
            let message = format!("{scheme}:// is not a known scheme; use file, {}", SCHEMES.join(", "));
            return Err(Error::argument(message).with_path(Path::new(text)));
        }
        let (base, key) = split_bucket(text, rest);
        let has_secret = base.get(scheme.len()..).is_some_and(|host| host.contains('@'));
        if has_secret && !scheme.starts_with("abfs") || key.contains('?') && scheme.starts_with("http") {
            let message = format!("a {scheme}:// URL with a password or a query is not accepted: use storage_options");
            return Err(Error::argument(message));
        }
        if scheme != "memory" && base.ends_with('/') {
            let message = format!("the URL has no bucket: write {scheme}://NAME, or {scheme}://NAME/PREFIX");
            return Err(Error::argument(message).with_path(Path::new(text)));
        }
        let is_http = scheme.starts_with("http");
        let key = if is_http { Cow::Owned(percent_decoded(key)) } else { Cow::Borrowed(key) };
        let store = options.open(scheme, base)?;
        let (options, scheme, root) = (options.clone(), scheme.to_owned(), base.to_owned());
        let reopen = move || options.open(&scheme, &root);
        Ok(Self::of_shared(SharedStore::new(store, Some(Box::new(reopen))), base, &key))
    }

    /// The objects of a store that was opened by the caller. `name` is the beginning of its paths, such as
    /// `s3://bucket`, and `key` the object or prefix.
    #[must_use]
    pub fn of_objects(store: Arc<dyn ObjectStore>, name: &str, key: &str) -> Self {
        Self::of_shared(SharedStore::new(store, None), name, key)
    }

    fn of_shared(store: SharedStore, name: &str, key: &str) -> Self {
        let key = key.trim_matches('/');
        let path = if key.is_empty() { PathBuf::from(name) } else { PathBuf::from(format!("{name}/{key}")) };
        Self::in_store(path, Arc::new(ObjectFiles::new(store, name, key)))
    }
}

/// Replaces `%20` and other escapes by the bytes that they encode.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = after.part(if escaped.is_some() { 2 } else { 0 }..);
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Splits a URL before the key: the bucket, container or host, and the key in it.
fn split_bucket<'t>(text: &'t str, rest: &'t str) -> (&'t str, &'t str) {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    let base_len = text.len().saturating_sub(rest.len()).saturating_add(bucket.len());
    (text.get(..base_len).unwrap_or(text), key)
}

#[cfg(test)]
pub(crate) mod tests;

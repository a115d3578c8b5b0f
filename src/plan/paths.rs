//! Paths of a read, as text that every task can receive.

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};
use crate::objects::SCHEMES;

/// A URL of a store as it is, and the absolute path of any other path.
///
/// # Errors
/// A URL of another scheme, and one that only this process could read.
pub(crate) fn absolute(path: &str) -> Result<String> {
    let (scheme, rest) = path.split_once(':').unwrap_or(("", path));
    let scheme = scheme.to_ascii_lowercase();
    if scheme == "memory" && rest.starts_with("//") {
        return Err(Error::argument(format!(
            "kbat: {path} is in the memory of one process, and tasks are other processes"
        )));
    }
    match rest.strip_prefix('/') {
        Some(rest) if SCHEMES.contains(&scheme.as_str()) => {
            if rest.starts_with('/') {
                return Ok(path.to_owned());
            }
            Err(Error::argument(format!("kbat: {path}: pathlib removes a slash from URLs; pass the URL as a str")))
        }
        _ => local_path(path),
    }
}

/// The absolute path of a path or `file:` URL.
///
/// # Errors
/// A URL of another scheme.
pub(crate) fn local_path(path: &str) -> Result<String> {
    let (scheme, rest) = path.split_once(':').unwrap_or(("", path));
    if scheme.eq_ignore_ascii_case("file") {
        return text_of(&without_dots(Path::new(&format!("/{}", rest.trim_start_matches('/')))));
    }
    let is_scheme = scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_scheme && rest.starts_with('/') {
        return Err(Error::argument(format!(
            "kbat: {path} is not in a local file system; every task opens files by a path that all machines have: \
             mount or copy it"
        )));
    }
    let in_home = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let home = in_home.and_then(|rest| Some(std::env::home_dir()?.join(rest.trim_start_matches('/'))));
    let path = home.unwrap_or_else(|| PathBuf::from(path));
    let full = std::path::absolute(&path).map_err(|error| Error::from(error).with_path(&path))?;
    text_of(&without_dots(&full))
}

/// An absolute path without `.` and `..`.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            _ => plain.push(component),
        }
    }
    plain
}

/// A path as text, which every task can receive.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Error::argument("kbat: the path is not UTF-8, so tasks can't receive it").with_path(path))
}

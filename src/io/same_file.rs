//! Whether two names are of one file.

use std::fs::Metadata;

/// Whether both are the metadata of one file. Always `false` on a system without numbers for files.
#[cfg(unix)]
pub(crate) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
pub(crate) fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    false
}

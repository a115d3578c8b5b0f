//! What a write has in its target until it is complete, so that readers can say that files may be missing.

use crate::io::Location;

/// Part of the name of an incomplete file or directory.
pub(crate) const PARTIAL: &str = ".kbat-partial";
/// Begins the name of an incomplete directory inside its target: Kafka only recognizes `-delete` after the name of a
/// partition.
pub(crate) const INSIDE: &str = "kbat-0";
/// The object that reserves a prefix while a result is uploaded to it. It stays if the upload fails.
pub(crate) const UPLOAD: &str = ".kbat-upload";
/// Begins the name of the directory in which a Spark write prepares its files.
pub(crate) const SPARK_JOB: &str = ".kbat-";
/// The file in that directory which exists while a committed write moves its files.
pub(crate) const COMMIT_PLAN: &str = "commit.json";

/// Names the write that has not completed a directory with these entries, and says what to do.
pub(crate) fn unfinished_write(entries: &[Location]) -> Option<String> {
    entries.iter().find_map(|entry| {
        let name = entry.name();
        let what = if name == UPLOAD {
            "an upload to this prefix is running or failed: if none is running, delete its objects and repeat it"
        } else if name.strip_prefix(INSIDE).is_some_and(|rest| rest.starts_with(PARTIAL)) {
            "a command that writes this directory is running or was killed: if none is running, delete the contents of \
             the directory and repeat the command"
        } else if name.starts_with(SPARK_JOB) && entry.is_dir() && entry.join(COMMIT_PLAN).exists() {
            "a Spark write is moving its files, or was killed before it had moved all: if none is running, repeat it"
        } else {
            return None;
        };
        Some(format!("files may be missing, as {} shows: {what}", entry.display()))
    })
}

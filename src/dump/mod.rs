//! The output of `kafka-dump-log`, line for line, for scripts that have no JVM.
//!
//! | file | lines |
//! |---|---|
//! | `.log`, `.checkpoint` | one per batch; with [`Options::deep`] also one per record |
//! | `.index`, `.timeindex` | one per entry, each compared with the log beside it |
//! | `.txnindex` | one per aborted transaction |
//! | `.snapshot` | one per producer |
//!
//! Files are read in windows, and records one batch at a time. Without [`Options::deep`], no batch is decompressed;
//! its checksum is always verified.
//!
//! As in `kafka-dump-log`, the first file that cannot be read or decoded ends the dump. What was printed before it is
//! in the output. `docs/differences.md` lists the differences.
//!
//! ```no_run
//! # fn main() -> kbat::Result<()> {
//! use kbat::dump::{Options, dump};
//! let options = Options { contents: true, ..Options::default() };
//! let files = ["orders-0/00000000000000000000.log".into()];
//! dump(&files, &options, &mut std::io::stdout(), &mut std::io::stderr())?;
//! # Ok(()) }
//! ```
//!
//! Source: `DumpLogSegments` of Kafka 4.3.1.

mod contents;
mod control;
mod files;
mod frame_fault;
mod index;
mod jsonl;
mod kafka;
mod log_file;
mod options;
mod records;
mod remarks;
mod remote;
pub(crate) mod sink;
mod table;
mod time_index;

use std::io::Write;
use std::path::Path;

use crate::compression::Scratch;
use crate::error::Result;
use crate::io::Location;

pub use options::{Decoder, Format, Options};

use remarks::Remarks;
use sink::Sink;

/// What the dump of one file after the other needs.
struct DumpJob<'j> {
    options: &'j Options,
    sink: Sink<'j>,
    notes: &'j mut dyn Write,
    remarks: Remarks,
    scratch: Scratch,
}

/// Prints files to `out`, and what is wrong with them to `notes`, as `kafka-dump-log` does to the standard output and
/// the standard error.
///
/// # Errors
/// A file that cannot be read, or bytes that Kafka cannot decode either; errors of `out` and `notes`.
pub fn dump(files: &[Location], options: &Options, out: &mut dyn Write, notes: &mut dyn Write) -> Result<()> {
    let sink = Sink::new(out);
    let mut job = DumpJob { options, sink, notes, remarks: Remarks::default(), scratch: Scratch::new() };
    let result = files.iter().try_for_each(|file| job.file(file));
    let flushed = job.sink.flush();
    result?;
    flushed?;
    job.remarks.write(job.notes)
}

impl DumpJob<'_> {
    fn file(&mut self, path: &Location) -> Result<()> {
        let shown = java_path(path);
        let name = shown.rsplit('/').next().unwrap_or_default().to_owned();
        self.heading(&shown);
        match name.rfind('.').and_then(|dot| name.get(dot..)) {
            Some(".log" | ".checkpoint") => self.log(path, &shown, &name),
            Some(".index") => self.offset_index(path, &shown, &name),
            Some(".timeindex") => self.time_index(path, &shown, &name),
            Some(".snapshot") => self.snapshot(path),
            Some(".txnindex") => self.transaction_index(path),
            _ => self.note(&format!("Ignoring unknown file {shown}")),
        }
    }

    fn heading(&mut self, shown: &str) {
        let out = &mut self.sink.buffer;
        match self.options.format {
            Format::Kafka => kafka::heading(out, shown),
            Format::Jsonl => jsonl::heading(out, shown),
            Format::Table => table::heading(out, shown),
        }
    }

    /// Writes a line to the notes, after everything printed before.
    fn note(&mut self, line: &str) -> Result<()> {
        self.sink.flush()?;
        writeln!(self.notes, "{line}")?;
        Ok(())
    }
}

/// A path as Java's `File` shows it: without repeated slashes and without one at the end.
fn java_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.contains("://") {
        return text.into_owned(); // a URL
    }
    let mut shown = String::new();
    for letter in text.chars() {
        if letter != '/' || !shown.ends_with('/') {
            shown.push(letter);
        }
    }
    if shown.len() > 1 && shown.ends_with('/') {
        shown.pop();
    }
    shown
}

/// A path as Java's `File.getAbsolutePath` shows it: `.` and `..` stay.
fn java_absolute(shown: &str) -> String {
    if shown.starts_with('/') {
        return shown.to_owned();
    }
    let directory = std::env::current_dir().unwrap_or_default();
    format!("{}/{shown}", directory.display())
}

/// The number at the start of a file's name, which is the base offset of its segment.
fn base_offset_of(name: &str) -> Option<i64> {
    name.split('.').next()?.parse().ok()
}

/// The file with another suffix in the same directory.
fn sibling(path: &Location, name: &str, suffix: &str) -> Location {
    let stem = name.split('.').next().unwrap_or_default();
    path.with_file_name(format!("{stem}.{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_as_in_java() {
        for (path, shown) in [("a//b/", "a/b"), ("./a.log", "./a.log"), ("/", "/"), ("//x", "/x")] {
            assert_eq!(java_path(Path::new(path)), shown);
        }
    }

    #[test]
    fn names_begin_with_the_base_offset() {
        assert_eq!(base_offset_of("00000000000000000042.log"), Some(42));
        assert_eq!(base_offset_of("bootstrap.checkpoint"), None);
    }
}

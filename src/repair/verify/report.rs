//! [`Report`]: what a verification found.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Findings of one kind in one file that are listed; the rest is counted.
const LISTED_COUNT: u64 = 20;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Normal in some logs: compacted ones, those of old or running brokers.
    Info,
    /// A broker lives with it, or puts it right when it starts.
    Warning,
    /// Data is lost, a broker would cut the log or not start, or its answers would be wrong.
    Error,
}

impl Severity {
    /// A name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is, a stable name in `snake_case`.
    pub kind: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Where in the file, in bytes.
    pub position: Option<u64>,
    /// The Kafka offset it is about.
    pub offset: Option<i64>,
    /// What it means and what to do.
    pub message: String,
}

/// What [`verify`](crate::repair::verify) found.
///
/// Its `Display` is a text of a line a finding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What was verified.
    pub path: PathBuf,
    /// Everything found, in the order of the files; of one kind in one file only the first twenty.
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub omitted_count: u64,
    /// Segments read.
    pub segment_count: u64,
    /// Batches that are whole.
    pub batch_count: u64,
    /// Records in them.
    pub record_count: u64,
    /// Bytes of `.log` files.
    pub byte_count: u64,
    counts: BTreeMap<(PathBuf, &'static str), u64>,
}

impl Report {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), ..Self::default() }
    }

    /// Whether there is no error.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.worst() != Some(Severity::Error)
    }

    /// The worst severity found.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// What a command should exit with: 0 where nothing is wrong, 1 for warnings, 2 for errors.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self.worst() {
            None | Some(Severity::Info) => 0,
            Some(Severity::Warning) => 1,
            Some(Severity::Error) => 2,
        }
    }

    /// Adds a finding.
    pub(crate) fn add(&mut self, finding: Finding) {
        let count = self.counts.entry((finding.path.clone(), finding.kind)).or_default();
        *count = count.saturating_add(1);
        if *count <= LISTED_COUNT {
            self.findings.push(finding);
        } else {
            self.omitted_count = self.omitted_count.saturating_add(1);
        }
    }

    /// Adds a finding about a file as a whole.
    pub(crate) fn about(&mut self, severity: Severity, kind: &'static str, path: &Path, message: impl Into<String>) {
        let (path, message) = (path.to_path_buf(), message.into());
        self.add(Finding { severity, kind, path, position: None, offset: None, message });
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity.name(), self.kind, self.path.display())?;
        if let Some(position) = self.position {
            write!(f, ", byte {position}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // what a person must see first
        for severity in [Severity::Error, Severity::Warning, Severity::Info] {
            for finding in self.findings.iter().filter(|finding| finding.severity == severity) {
                writeln!(f, "{finding}")?;
            }
        }
        if self.omitted_count > 0 {
            writeln!(f, "{} more findings of the same kinds", self.omitted_count)?;
        }
        let count = |severity| self.findings.iter().filter(|finding| finding.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        let (segments, batches, records) = (self.segment_count, self.batch_count, self.record_count);
        write!(f, "{}: {segments} segments, {batches} batches, {records} records: ", self.path.display())?;
        write!(f, "{errors} errors, {warnings} warnings")
    }
}

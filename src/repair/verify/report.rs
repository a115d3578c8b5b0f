//! [`Report`]: the findings of a verification.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Number of findings of one kind in one file to list. More are only counted.
const LISTED_COUNT: u64 = 20;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Normal in some logs, such as compacted ones and those of old or running brokers.
    Info,
    /// A broker tolerates it, or repairs it when it starts.
    Warning,
    /// Data is lost, or a broker would truncate the log, fail to start, or return wrong results.
    Error,
}

impl Severity {
    /// Name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A problem, or an unusual state that may be normal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// Kind of the finding, as a stable name in `snake_case`.
    pub kind: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Position in the file in bytes.
    pub position: Option<u64>,
    /// The Kafka offset concerned.
    pub offset: Option<i64>,
    /// Description, consequence, and advice.
    pub message: String,
}

/// The result of [`verify`](crate::repair::verify).
///
/// Its `Display` is a text with one line per finding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The input.
    pub path: PathBuf,
    /// The findings, in file order. Of one kind in one file, only the first twenty are listed.
    pub findings: Vec<Finding>,
    /// Number of findings that are not listed.
    pub omitted_count: u64,
    /// Number of segments read.
    pub segment_count: u64,
    /// Number of complete batches with a correct checksum.
    pub batch_count: u64,
    /// Number of records in these batches.
    pub record_count: u64,
    /// Total size of the `.log` files in bytes.
    pub byte_count: u64,
    counts: BTreeMap<(PathBuf, &'static str), u64>,
}

impl Report {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), ..Self::default() }
    }

    /// Whether there is no finding of severity `Error`.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.worst() != Some(Severity::Error)
    }

    /// The highest severity found.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Exit code for a command: 0 if there are no warnings or errors, 1 for warnings, 2 for errors.
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

    /// Adds a finding about an entire file.
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
        // the most important findings first
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

//! [`CommitPlan`]: the moves that complete a commit.
//!
//! Before anything moves, `commit.json` in the job's directory lists the moves. From then on the write is committed:
//! if the driver dies, the next write to the target completes them. Until then, nothing of the write is visible.
//!
//! ```json
//! {"remove": [], "move": ["orders-0", "orders-1"], "ends": {"orders-0": 1250}, "epoch": {"query": "8f4e…", "epoch": 12}}
//! ```
//!
//! With an epoch, the last move writes its number to `<path>/.kbat-stream-<query>`. A query that restarts before
//! Spark knows that its last micro-batch is complete writes it again, and this file shows that it is there already.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::io::Location;
use crate::io::atomic::{sync_directory, write_atomically};
use crate::io::lock::DirectoryLock;
use crate::io::unfinished::{COMMIT_PLAN, SPARK_JOB};
use crate::log::PartitionLog;
use crate::sink::files::{TargetLock, at, file_names, is_other, move_partition, remove_job, rename, step};
use crate::store::names::{LogFile, LogFileKind};
use crate::store::parse_partition_directory;

/// The directory of a job in which the new partitions and segments are made.
pub(super) const MADE: &str = "made";
/// The directory of a job to which replaced partitions move.
const REMOVED: &str = "removed";

/// A micro-batch of a streaming query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Epoch {
    query: String,
    epoch: i64,
}

impl Epoch {
    pub(super) fn new(query: &str, epoch: i64) -> Result<Self> {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if query.is_empty() || query.len() > 100 || !query.chars().all(is_legal) {
            return Err(Error::argument(format!("kbat: {query:?} is not the id of a streaming query")));
        }
        Ok(Self { query: query.to_owned(), epoch })
    }

    fn file(&self, path: &Path) -> PathBuf {
        path.join(format!(".kbat-stream-{}", self.query))
    }

    /// Whether the target has the micro-batch.
    pub(super) fn is_there(&self, path: &Path) -> Result<bool> {
        let file = self.file(path);
        match fs::read_to_string(&file) {
            Ok(text) => text.trim().parse::<i64>().map(|last| last >= self.epoch).map_err(|_| {
                let message =
                    "this is not the number of a micro-batch: to write the next one all the same, remove the file";
                Error::argument(message).with_path(&file)
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::from(error).with_path(&file)),
        }
    }
}

/// What remains to be done for a commit, by names of partition directories.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CommitPlan {
    /// Partitions that the write replaces.
    pub(super) remove: Vec<String>,
    /// Partitions to create or extend.
    #[serde(rename = "move")]
    pub(super) moves: Vec<String>,
    /// The end offsets of the partitions that are extended.
    #[serde(default)]
    pub(super) ends: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) epoch: Option<Epoch>,
}

impl CommitPlan {
    /// Commits the write.
    ///
    /// # Errors
    /// I/O errors, whose note says if the write is committed nevertheless.
    pub(super) fn write(&self, path: &Path, job: &Path) -> Result<()> {
        let file = job.join(COMMIT_PLAN);
        at(&file, step("plan"))?;
        let written = write_atomically(&file, &serde_json::to_vec(self).map_err(Error::other)?);
        written
            .and_then(|()| at(&file, step("planned")))
            .map_err(|error| if is_committed(job) { with_committed_note(error, path, job) } else { error })
    }

    /// The plan of a job; `None` if it has none.
    fn read(job: &Path) -> Result<Option<Self>> {
        let file = job.join(COMMIT_PLAN);
        let content = match fs::read(&file) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::from(error).with_path(&file)),
        };
        let refused = |reason: String| {
            let advice = "the write that it belongs to can't be completed: look into the directory, then remove it";
            Error::argument(format!("kbat: this is not the plan of a commit: {reason}"))
                .with_path(&file)
                .with_note(advice)
        };
        let plan: Self = serde_json::from_slice(&content).map_err(|error| refused(error.to_string()))?;
        let mut names = plan.remove.iter().chain(&plan.moves);
        if let Some(name) = names.find(|name| parse_partition_directory(name).is_none()) {
            return Err(refused(format!("{name:?} is not the name of a partition directory")));
        }
        if let Some(epoch) = &plan.epoch {
            Epoch::new(&epoch.query, epoch.epoch)?;
        }
        Ok(Some(plan))
    }

    /// Refuses the write if others have appended to a partition that it extends.
    pub(super) fn check_ends(&self, path: &Path, job: &Path) -> Result<()> {
        self.ends.keys().try_for_each(|name| self.lock(name, path, job).map(drop))
    }

    /// Locks an existing partition, and refuses it if its end has changed before the first segment was moved.
    fn lock(&self, name: &str, path: &Path, job: &Path) -> Result<Option<DirectoryLock>> {
        let directory = path.join(name);
        if !directory.exists() {
            return Ok(None);
        }
        let lock = DirectoryLock::acquire(&directory)?;
        let planned = self.ends.get(name).copied().unwrap_or(0);
        let first = LogFile::live(planned, LogFileKind::Log).to_string();
        let (made, target) = (job.join(MADE).join(name).join(&first), directory.join(&first));
        let is_moved = !made.exists() || target.exists() && !is_other(&target, &made);
        if is_moved {
            return Ok(Some(lock));
        }
        let log = PartitionLog::open(Location::local(&directory))?;
        let end = if log.segments().is_empty() { planned } else { log.end_offset()? };
        if end != planned {
            let message = format!(
                "kbat: {name} ends at offset {end}, but a write that was interrupted continues at {planned}: remove {} to \
                 discard that write, and write its rows again",
                job.display()
            );
            return Err(Error::argument(message).with_path(&directory));
        }
        Ok(Some(lock))
    }

    /// Does the remaining moves.
    fn carry_out(&self, path: &Path, job: &Path) -> Result<()> {
        let removed = job.join(REMOVED);
        at(&removed, fs::create_dir_all(&removed))?;
        for name in &self.remove {
            if !removed.join(name).exists() {
                let _lock = DirectoryLock::acquire(&path.join(name))?;
                rename(&path.join(name), &removed.join(name))?;
            }
        }
        for name in &self.moves {
            let made = job.join(MADE).join(name);
            if made.exists() {
                let _lock = self.lock(name, path, job)?;
                move_partition(&made, &path.join(name))?;
            }
            let directory = path.join(name);
            if directory.exists() {
                at(&directory, sync_directory(&directory))?;
            }
        }
        at(path, sync_directory(path))?;
        if let Some(epoch) = &self.epoch {
            let file = epoch.file(path);
            at(&file, step("epoch"))?;
            write_atomically(&file, epoch.epoch.to_string().as_bytes())?;
        }
        Ok(())
    }
}

/// Whether a job's write is committed, although some files may not be moved yet.
pub(super) fn is_committed(job: &Path) -> bool {
    job.join(COMMIT_PLAN).exists()
}

fn with_committed_note(error: Error, path: &Path, job: &Path) -> Error {
    error.with_note(format!(
        "the write is committed; the next write to {} moves the remaining files, unless you remove {}",
        path.display(),
        job.display()
    ))
}

/// Does the remaining moves of a job's plan. Does nothing if a concurrent write, which the lock did not prevent, has
/// completed it.
pub(super) fn carry_out(path: &Path, job: &Path) -> Result<()> {
    let Some(plan) = CommitPlan::read(job)? else { return Ok(()) };
    plan.carry_out(path, job).map_err(|error| with_committed_note(error, path, job))?;
    let file = job.join(COMMIT_PLAN);
    at(&file, step("done").and_then(|()| fs::remove_file(&file)))
}

/// Completes the commits of drivers that died during them. Does nothing while another driver commits, as that driver
/// did this before it began.
pub(super) fn finish_commits(path: &Path) -> Result<()> {
    if committed_jobs(path)?.is_empty() {
        return Ok(());
    }
    match TargetLock::try_acquire(path)? {
        Some(_lock) => finish_dead(path),
        None => Ok(()),
    }
}

/// Completes all existing plans. The caller holds the lock, so their drivers are dead.
pub(super) fn finish_dead(path: &Path) -> Result<()> {
    for job in committed_jobs(path)? {
        if let Some(plan) = CommitPlan::read(&job)? {
            plan.check_ends(path, &job)?;
        }
        carry_out(path, &job)?;
        remove_job(&job);
    }
    Ok(())
}

/// The directories of jobs with a plan, in the order of their names.
fn committed_jobs(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let jobs = file_names(path)?.into_iter().filter(|name| name.starts_with(SPARK_JOB)).map(|name| path.join(name));
    Ok(jobs.filter(|job| is_committed(job)).collect())
}

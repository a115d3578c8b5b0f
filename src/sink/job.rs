//! [`WriteJob`]: one write; data that can be sent anywhere as bytes.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::io::Location;
use crate::io::unfinished::SPARK_JOB;
use crate::log::LogDirectory;
use crate::partitioner::murmur2;
use crate::plan::Pairs;
use crate::plan::paths::text_of;
use crate::plan::transfer;
use crate::sink::commit::Commit;
use crate::sink::files::{at, remove_job, rename};
use crate::sink::ids::random;
use crate::sink::options::{WriteOptions, check_columns};
use crate::sink::plan::{Epoch, finish_commits, is_committed};
use crate::sink::written::{Fragment, Written};

/// A write, from the check of its options to its commit. The driver of a cluster starts and ends it, and its tasks
/// write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteJob {
    /// The options, as the user wrote them.
    options: Pairs,
    /// The absolute path of the target.
    path: String,
    /// The directory of the job, in the target.
    directory: String,
    overwrite: bool,
    /// Whether the job created the target.
    is_new: bool,
    /// The topics of the target before the write.
    pub(super) existing: BTreeMap<String, ExistingTopic>,
}

/// The partitions of a topic before a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExistingTopic {
    /// One more than the largest number of a partition.
    pub(super) partition_count: u32,
    /// Where the rows without a key begin: writes begin with different partitions, also if each of them adds a segment
    /// to every partition.
    pub(super) first_turn: u32,
}

impl ExistingTopic {
    pub(super) fn new(partition_count: u32, segment_count: u32) -> Self {
        let first_turn = murmur2(&segment_count.to_be_bytes()) & i32::MAX.cast_unsigned();
        Self { partition_count, first_turn }
    }
}

impl WriteJob {
    /// Checks options and columns, which are name and type in SQL of each. Returns a warning about ignored options.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) that names the option or the column.
    pub fn check(options: &[(String, String)], columns: &[(String, String)]) -> Result<Option<String>> {
        let parsed = WriteOptions::parse(options)?;
        check_columns(columns, &parsed)?;
        Ok(parsed.warning())
    }

    /// Starts a write: completes the commits of drivers that died, and creates the directory of the job. With
    /// `overwrite`, the commit replaces all partitions of the topics of the rows.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), of an interrupted commit, and I/O errors.
    pub fn start(options: &[(String, String)], columns: &[(String, String)], overwrite: bool) -> Result<Self> {
        let parsed = WriteOptions::parse(options)?;
        check_columns(columns, &parsed)?;
        let path = parsed.directory()?;
        let target = Path::new(&path);
        finish_commits(target)?;
        let existing = existing_topics(target)?;
        let is_new = !target.exists();
        let directory = target.join(format!("{SPARK_JOB}{:032x}", random()));
        at(&directory, fs::create_dir_all(&directory))?;
        let directory = text_of(&directory)?;
        Ok(Self { options: options.to_vec(), path, directory, overwrite, is_new, existing })
    }

    /// The job as bytes for [`from_bytes`](Self::from_bytes).
    ///
    /// # Errors
    /// None that occurs.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        transfer::to_bytes(self)
    }

    /// The job that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// Bytes of another version of kbat, or other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        transfer::from_bytes(bytes, "the write")
    }

    /// The directory in which the tasks write.
    #[must_use]
    pub fn directory(&self) -> &Path {
        Path::new(&self.directory)
    }

    /// Whether the write is committed, although some files may not be moved yet.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        is_committed(self.directory())
    }

    /// Sets the offsets of all records, and moves them into the partitions, task by task.
    ///
    /// # Errors
    /// An existing partition whose end is corrupt or that has a higher leader epoch; files of a concurrent write, if
    /// locks have no effect; I/O errors. Before the commit, nothing is visible; after it, the next write to the
    /// target moves the remaining files.
    pub fn commit(&self, written: &[Written]) -> Result<()> {
        self.commit_as(written, None)
    }

    /// Commits a micro-batch of a streaming query, unless the target has it already: a query that restarts writes its
    /// last micro-batch again.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit); an id of a query that can't be part of a file's name.
    pub fn commit_epoch(&self, written: &[Written], query: &str, epoch: i64) -> Result<()> {
        self.commit_as(written, Some(Epoch::new(query, epoch)?))
    }

    fn commit_as(&self, written: &[Written], epoch: Option<Epoch>) -> Result<()> {
        let mut tasks: Vec<&Written> = written.iter().collect();
        tasks.sort_by_key(|task| task.number);
        let options = self.options()?;
        let commit = Commit {
            path: Path::new(&self.path),
            job: self.directory(),
            options: &options,
            overwrite: self.overwrite,
            partition_counts: self.partition_counts(&options, &tasks),
        };
        let fragments: Vec<&Fragment> = tasks.into_iter().flat_map(|task| &task.fragments).collect();
        commit.run(&fragments, epoch)?;
        let _ = self.clear(); // the rows are there: after an error, users would write them again
        Ok(())
    }

    /// The number of partitions that each topic must have, if there is one. A key only goes to the same partition in
    /// each write if it stays the same.
    fn partition_counts(&self, options: &WriteOptions, tasks: &[&Written]) -> BTreeMap<String, u32> {
        let of_option = options.num_partitions.map(NonZeroU32::get);
        let written = tasks.iter().flat_map(|task| task.fragments.iter().map(|fragment| &fragment.topic));
        let counted = tasks.iter().flat_map(|task| &task.counted_topics);
        let existing = |topic: &String| self.existing.get(topic).map(|existing| existing.partition_count);
        match of_option {
            Some(count) => written.map(|topic| (topic.clone(), count)).collect(),
            None => counted.filter_map(|topic| Some((topic.clone(), existing(topic)?))).collect(),
        }
    }

    /// Removes all files of the write, unless it is committed and only moving failed: the next write completes it.
    ///
    /// # Errors
    /// I/O errors.
    pub fn abort(&self) -> Result<()> {
        if self.is_committed() {
            return Ok(());
        }
        self.clear()?;
        if self.is_new {
            let _ = fs::remove_dir(&self.path); // it may have files of another write
        }
        Ok(())
    }

    /// Removes the directory of the job. Tasks that are still running fail, as they can no longer write.
    fn clear(&self) -> Result<()> {
        let gone = PathBuf::from(format!("{}-gone", self.directory));
        if let Err(error) = rename(self.directory(), &gone)
            && !error.is_not_found()
        {
            return Err(error);
        }
        remove_job(&gone);
        Ok(())
    }

    pub(super) fn options(&self) -> Result<WriteOptions> {
        WriteOptions::parse(&self.options)
    }
}

fn existing_topics(path: &Path) -> Result<BTreeMap<String, ExistingTopic>> {
    // the number of partitions and of segments
    let mut counts: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    if path.exists() {
        for log in LogDirectory::open_target(&Location::local(path))?.partitions() {
            let Some(partition) = log.topic_partition() else { continue };
            let (partition_count, segment_count) = counts.entry(partition.topic.clone()).or_default();
            *partition_count = partition.partition.unsigned_abs().saturating_add(1).max(*partition_count);
            *segment_count = segment_count.saturating_add(u32::try_from(log.segments().len()).unwrap_or(u32::MAX));
        }
    }
    let topic = |(name, (partitions, segments))| (name, ExistingTopic::new(partitions, segments));
    Ok(counts.into_iter().map(topic).collect())
}

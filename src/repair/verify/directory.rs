//! Checks a log directory, apart from the segments of its partitions.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::io::unfinished::SPARK_JOB;
use crate::io::{Location, Progress};
use crate::limits::Limits;
use crate::log::checkpoint::MetaProperties;
use crate::log::inventory::name_of;
use crate::repair::verify::checkpoints::Checkpoints;
use crate::repair::verify::partition::{check_partition, check_unfinished, is_unreadable, unreadable};
use crate::repair::verify::report::{Report, Severity};
use crate::store::listing::SAME_PARTITION;
use crate::store::names::{
    DirectoryState, PartitionDirectory, TopicPartition, is_beside_partitions, parse_partition_directory,
};

const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
const META_PROPERTIES: &str = "meta.properties";

/// The directories in a directory, sorted, and links of partitions that lead nowhere.
pub(crate) fn directories(path: &Location) -> Result<Vec<Location>> {
    let mut found = path.entries()?;
    found.retain(|path| {
        let is_partition = || PartitionDirectory::parse(path.name()).is_some();
        path.is_dir() || path.is_link() && !path.exists() && is_partition()
    });
    Ok(found)
}

/// Checks a log directory and all partitions in it.
pub(crate) fn check_directory(
    path: &Location,
    wanted: &dyn Fn(&TopicPartition) -> bool,
    limits: &Limits,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<()> {
    if !path.is_layout() {
        check_meta(path, report);
    }
    check_unfinished(path, &path.entries()?, report);
    // before the logs, which may become longer in the meantime
    let checkpoints = Checkpoints::read(path);
    let (mut ends, mut seen, mut named) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for directory in directories(path)? {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let parsed = PartitionDirectory::parse(&name);
        named.extend(parsed.iter().map(|one| TopicPartition { topic: one.topic.clone(), partition: one.partition }));
        match parsed {
            Some(PartitionDirectory { topic, partition, state: DirectoryState::Live }) => {
                let partition = TopicPartition { topic, partition };
                if !wanted(&partition) {
                    continue;
                }
                if !seen.insert(partition.clone()) {
                    let message = format!(
                        "another directory is of the same partition, and a broker does not start: {SAME_PARTITION}"
                    );
                    report.about(Severity::Error, "directory_name", &directory, message);
                }
                match check_partition(&directory, limits, progress, report) {
                    Ok(Some((_, end))) => {
                        ends.insert((partition.topic, partition.partition), end);
                    }
                    Ok(None) => {}
                    // other partitions may still be readable
                    Err(error) => unreadable(error, &directory, report)?,
                }
            }
            Some(_) => {
                let message = "a partition that was deleted, moved or abandoned; not checked";
                report.about(Severity::Info, "stray_directory", &directory, message);
            }
            None if is_beside_partitions(&name) => {}
            None if name.starts_with(SPARK_JOB) => {
                let message = "the working directory of a Spark write that is running or was killed; a broker does \
                    not start with it: if no write is running, remove the directory, unless it contains a commit.json";
                report.about(Severity::Error, "directory_name", &directory, message);
            }
            None if holds_partitions(&directory)? => {
                let message =
                    "it contains partitions: if this is the log directory, verify it instead of its parent directory";
                report.about(Severity::Error, "directory_name", &directory, message);
            }
            None => {
                let message = "not the name of a partition; a broker does not start with it: move the directory away";
                report.about(Severity::Error, "directory_name", &directory, message);
            }
        }
    }
    for remote in path.unlisted() {
        if parse_partition_directory(remote.name()).is_some_and(|partition| wanted(&partition)) {
            let message = format!("only in remote storage: there is no directory of it in {}", path.display());
            report.about(Severity::Info, "remote_partition", &remote, message);
        }
    }
    named.extend(path.unlisted().iter().filter_map(|one| parse_partition_directory(one.name())));
    checkpoints.check(wanted, &ends, &named, report);
    Ok(())
}

/// Whether a directory is a log directory, judging by the names in it.
fn holds_partitions(path: &Location) -> Result<bool> {
    Ok(directories(path)?.iter().any(|directory| parse_partition_directory(&name_of(directory)).is_some()))
}

fn check_meta(path: &Location, report: &mut Report) {
    let meta = path.join(META_PROPERTIES);
    match MetaProperties::read(&meta) {
        Ok(_) => {}
        Err(error) if error.is_not_found() => {
            let message = "without this file, a broker treats the directory as new";
            report.about(Severity::Warning, "meta_properties_missing", &meta, message);
        }
        Err(error) if is_unreadable(&error, &meta, report) => {}
        Err(error) => {
            let message = format!("{}; a broker does not start with it", error.kind());
            report.about(Severity::Error, "meta_properties", &meta, message);
        }
    }
    if !path.join(CLEAN_SHUTDOWN).exists() {
        let message =
            "the broker is running or was not shut down cleanly; in that case it recovers its logs when it starts";
        report.about(Severity::Info, "unclean_shutdown", path, message);
    }
}

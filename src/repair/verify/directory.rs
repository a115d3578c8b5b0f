//! A log directory: what lies beside the partitions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::io::Progress;
use crate::limits::Limits;
use crate::log::checkpoint::{MetaProperties, OffsetCheckpoint};
use crate::log::inventory::name_of;
use crate::log::log_directory::OFFSET_CHECKPOINTS;
use crate::repair::verify::partition::{check_partition, unreadable};
use crate::repair::verify::report::{Finding, Report, Severity};
use crate::store::names::{DirectoryState, PartitionDirectory, TopicPartition, parse_partition_directory};

/// Directories that are no partitions.
const KNOWN: [&str; 2] = ["remote-log-index-cache", "lost+found"];
/// How the name of the directory begins that a Spark write works in.
const SPARK_JOB: &str = ".kbat-";
const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
const META_PROPERTIES: &str = "meta.properties";

/// The directories in a directory, sorted.
pub(crate) fn directories(path: &Path) -> Result<Vec<PathBuf>> {
    let read = || {
        let mut found = Vec::new();
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            if path.is_dir() {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    };
    read().map_err(|error: std::io::Error| Error::from(error).with_path(path))
}

/// Checks a log directory and all partitions in it.
pub(crate) fn check_directory(
    path: &Path,
    wanted: &dyn Fn(&TopicPartition) -> bool,
    limits: &Limits,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<()> {
    check_meta(path, report);
    let mut ends = BTreeMap::new();
    for directory in directories(path)? {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match PartitionDirectory::parse(&name) {
            Some(PartitionDirectory { topic, partition, state: DirectoryState::Live }) => {
                let partition = TopicPartition { topic, partition };
                if !wanted(&partition) {
                    continue;
                }
                match check_partition(&directory, limits, progress, report) {
                    Ok(Some((_, end))) => {
                        ends.insert((partition.topic, partition.partition), end);
                    }
                    Ok(None) => {}
                    // one that can't be listed; the others can
                    Err(error) => unreadable(error, &directory, report)?,
                }
            }
            Some(_) => {
                let message = "a partition that is deleted, moved or was left behind: not looked into";
                report.about(Severity::Info, "stray_directory", &directory, message);
            }
            None if KNOWN.contains(&name.as_str()) => {}
            None if name.starts_with(SPARK_JOB) => {
                let message = "of a Spark write that runs, or was killed: a broker does not start with it; if none runs, \
                    write to the directory again where it holds a commit.json, and else remove it";
                report.about(Severity::Error, "directory_name", &directory, message);
            }
            None if holds_partitions(&directory)? => {
                let message =
                    "partitions lie in it: if this is the log directory, verify it and not the directory above";
                report.about(Severity::Error, "directory_name", &directory, message);
            }
            None => {
                let message = "no partition has this name: a broker does not start with it; move it away";
                report.about(Severity::Error, "directory_name", &directory, message);
            }
        }
    }
    for name in OFFSET_CHECKPOINTS {
        check_offsets(&path.join(name), name, &ends, report);
    }
    Ok(())
}

/// Whether a directory is a log directory by the names in it.
fn holds_partitions(path: &Path) -> Result<bool> {
    Ok(directories(path)?.iter().any(|directory| parse_partition_directory(&name_of(directory)).is_some()))
}

fn check_meta(path: &Path, report: &mut Report) {
    let meta = path.join(META_PROPERTIES);
    match MetaProperties::read(&meta) {
        Ok(_) => {}
        Err(error) if error.is_not_found() => {
            let message = "without it a broker takes the directory for a new one";
            report.about(Severity::Warning, "meta_properties_missing", &meta, message);
        }
        Err(error) => {
            let message = format!("{}; a broker does not start with it", error.kind());
            report.about(Severity::Error, "meta_properties", &meta, message);
        }
    }
    if !path.join(CLEAN_SHUTDOWN).exists() {
        let message = "no clean shutdown: the broker runs or was killed, and recovers its logs when it starts";
        report.about(Severity::Info, "unclean_shutdown", path, message);
    }
}

/// A checkpoint against the ends of the logs.
fn check_offsets(path: &Path, name: &str, ends: &BTreeMap<(String, i32), i64>, report: &mut Report) {
    let checkpoint = match OffsetCheckpoint::read(path) {
        Ok(checkpoint) => checkpoint,
        Err(error) if error.is_not_found() => return,
        Err(error) => {
            let message = format!("{}; a broker takes its offsets for 0, or does not start", error.kind());
            report.about(Severity::Error, "checkpoint", path, message);
            return;
        }
    };
    for entry in &checkpoint.entries {
        let Some(end) = ends.get(&(entry.topic.clone(), entry.partition)) else { continue };
        if entry.offset <= *end {
            continue;
        }
        let (severity, consequence) = match name {
            "log-start-offset-checkpoint" => (Severity::Error, "a broker deletes all of the log when it starts"),
            _ => (Severity::Warning, "the log was cut since"),
        };
        let (topic, partition) = (&entry.topic, entry.partition);
        let message = format!("it is of {topic}-{partition}, whose log ends at {end}: {consequence}");
        let (path, kind) = (path.to_path_buf(), "checkpoint_beyond_end");
        report.add(Finding { severity, kind, path, position: None, offset: Some(entry.offset), message });
    }
}

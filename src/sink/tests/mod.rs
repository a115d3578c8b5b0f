#![allow(clippy::single_range_in_vec_init, reason = "lists of runs may have one run")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};

use super::files::file_names;
use super::*;
use crate::error::Result;
use crate::io::Progress;
use crate::limits::Limits;
use crate::log::{LogWriter, LogWriterOptions};
use crate::repair::verify;
use crate::{Scratch, batches};

mod counts;
pub(in crate::sink) mod hooks;
mod keyless;
mod refusals;

use hooks::{death_at, hooked, once_before, without_locks};

/// A directory that is removed in the end.
struct TargetDirectory(PathBuf);

impl TargetDirectory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kbat-sink-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for TargetDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn pairs(given: &[(&str, &str)]) -> Vec<(String, String)> {
    given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn columns() -> Vec<(String, String)> {
    pairs(&[("topic", "string"), ("partition", "int"), ("value", "string")])
}

fn job_with(path: &Path, options: &[(&str, &str)], overwrite: bool) -> Result<WriteJob> {
    let mut given = pairs(options);
    given.push(("path".to_owned(), path.to_str().unwrap().to_owned()));
    WriteJob::start(&given, &columns(), overwrite)
}

fn job(path: &Path) -> WriteJob {
    job_with(path, &[], false).unwrap()
}

type InputRow = (String, i32, String);

/// Rows of a partition, whose values are numbered.
fn numbered(name: &str, numbers: Range<i32>) -> Vec<InputRow> {
    let (topic, partition) = name.rsplit_once('-').unwrap();
    numbers.map(|number| (topic.to_owned(), partition.parse().unwrap(), format!("{name}:{number}"))).collect()
}

fn arrow(rows: &[InputRow]) -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("topic", Arc::new(rows.iter().map(|row| Some(row.0.as_str())).collect::<StringArray>())),
        ("partition", Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Int32Array>())),
        ("value", Arc::new(rows.iter().map(|row| Some(row.2.as_str())).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn task(job: &WriteJob, number: u32, rows: &[InputRow]) -> Written {
    let mut writer = TaskWriter::new(job, number, 7).unwrap();
    for part in rows.chunks(3) {
        writer.write(&arrow(part)).unwrap();
    }
    writer.finish().unwrap()
}

type LogContents = BTreeMap<String, Vec<(i64, String)>>;

/// Offset and value of the records of each partition.
fn contents(path: &Path) -> LogContents {
    let mut found = LogContents::new();
    for name in names(path) {
        let directory = path.join(&name);
        let logs = file_names(&directory).unwrap().into_iter().filter(|file| file.strip_suffix(".log").is_some());
        let records = found.entry(name).or_default();
        for log in logs {
            let bytes = fs::read(directory.join(log)).unwrap();
            for batch in batches(&bytes) {
                let mut scratch = Scratch::new();
                for record in batch.unwrap().records(&mut scratch, &Limits::default()).unwrap() {
                    let record = record.unwrap();
                    records.push((record.offset(), String::from_utf8(record.value().unwrap().to_vec()).unwrap()));
                }
            }
        }
    }
    found
}

/// The names that are not hidden.
fn names(path: &Path) -> Vec<String> {
    file_names(path).unwrap().into_iter().filter(|name| !name.starts_with('.')).collect()
}

/// The records of partitions, with runs of numbers.
fn expected(partitions: &[(&str, &[Range<i32>])]) -> LogContents {
    let records = |name: &str, runs: &[Range<i32>]| {
        let values = runs.iter().cloned().flatten().map(|number| format!("{name}:{number}"));
        (0..).zip(values).collect()
    };
    partitions.iter().map(|(name, runs)| ((*name).to_owned(), records(name, runs))).collect()
}

fn assert_sound(path: &Path) {
    for name in names(path) {
        let report = verify(path.join(&name), &Limits::default(), &mut Progress::none()).unwrap();
        assert_eq!(report.exit_code(), 0, "{name}");
    }
}

fn write(path: &Path, rows: &[InputRow]) {
    let job = job(path);
    job.commit(&[task(&job, 0, rows)]).unwrap();
}

#[test]
fn commit_puts_tasks_one_after_the_other() {
    let target = TargetDirectory::new("order");
    let path = &target.0;
    let job = job_with(path, &[("batchSize", "100"), ("segmentBytes", "500")], false).unwrap();
    let job = WriteJob::from_bytes(&job.to_bytes().unwrap()).unwrap();
    let second = task(&job, 1, &[numbered("a-0", 40..60), numbered("b-7", 0..4)].concat());
    let first = task(&job, 0, &numbered("a-0", 0..40));
    assert_eq!(names(path), [""; 0]);
    let second = Written::from_bytes(&second.to_bytes().unwrap()).unwrap();
    job.commit(&[second, first]).unwrap();
    assert_eq!(contents(path), expected(&[("a-0", &[0..60]), ("b-7", &[0..4])]));
    assert_eq!(file_names(path).unwrap(), ["a-0", "b-7"]);
    assert!(
        file_names(&path.join("a-0")).unwrap().iter().filter(|name| name.strip_suffix(".log").is_some()).count() > 4
    );
    assert_sound(path);
    write(path, &numbered("a-0", 60..70));
    assert_eq!(contents(path), expected(&[("a-0", &[0..70]), ("b-7", &[0..4])]));
    assert_sound(path);
}

/// At every step: without a plan, the write is invisible; with a plan, the next write completes it.
#[test]
fn commit_that_died_is_completed_by_the_next_write() {
    for overwrite in [false, true] {
        let old = expected(&[("a-0", &[0..3]), ("a-1", &[0..3])]);
        let new = if overwrite {
            expected(&[("a-0", &[5..9]), ("b-0", &[5..9])])
        } else {
            expected(&[("a-0", &[0..3, 5..9]), ("a-1", &[0..3]), ("b-0", &[5..9])])
        };
        let mut outcomes = BTreeSet::new();
        for number in 0.. {
            let target = TargetDirectory::new(&format!("death-{overwrite}-{number}"));
            let path = &target.0;
            write(path, &[numbered("a-0", 0..3), numbered("a-1", 0..3)].concat());
            let job = job_with(path, &[], overwrite).unwrap();
            let written = task(&job, 0, &[numbered("a-0", 5..9), numbered("b-0", 5..9)].concat());
            let result = hooked(death_at(number), || job.commit(&[written]));
            let is_committed = job.is_committed();
            job_with(path, &[], false).unwrap().abort().unwrap();
            let is_done = is_committed || outcomes.contains("done");
            assert_eq!(contents(path), if is_done { new.clone() } else { old.clone() }, "{overwrite}, step {number}");
            assert_sound(path);
            outcomes.insert(if is_done { "done" } else { "nothing" });
            if result.is_ok() {
                break;
            }
        }
        assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), ["done", "nothing"]);
    }
}

#[test]
fn abort_leaves_a_committed_write_to_the_next_one() {
    let target = TargetDirectory::new("abort");
    let path = &target.0;
    let job_one = job(path);
    let written = task(&job_one, 0, &numbered("a-0", 0..3));
    let fail_after_plan = |name: &str| if name == "rename" { Err(io::Error::other("no room")) } else { Ok(()) };
    let mut is_committed = false;
    let plan = job_one.directory().join("commit.json");
    let hook = move |name: &str| {
        is_committed |= plan.exists();
        if is_committed { fail_after_plan(name) } else { Ok(()) }
    };
    let error = hooked(hook, || job_one.commit(&[written])).unwrap_err().to_string();
    assert!(error.contains("no room") && error.contains("the write is committed; the next write to"), "{error}");
    job_one.abort().unwrap();
    assert_eq!(names(path), [""; 0]);
    job(path).abort().unwrap();
    assert_eq!(contents(path), expected(&[("a-0", &[0..3])]));
    assert_eq!(file_names(path).unwrap(), ["a-0"]);
}

#[test]
fn interrupted_write_does_not_overlap_what_others_appended() {
    let target = TargetDirectory::new("appended");
    let path = &target.0;
    write(path, &numbered("a-0", 0..3));
    let job_one = job(path);
    let written = task(&job_one, 0, &numbered("a-0", 3..5));
    hooked(
        |name: &str| if name == "planned" { Err(io::Error::other("died")) } else { Ok(()) },
        || job_one.commit(&[written]).unwrap_err(),
    );
    let mut log = LogWriter::open(path.join("a-0"), LogWriterOptions::default()).unwrap();
    log.append(0, None, Some(b"other"), &[]).unwrap();
    log.close().unwrap();
    let error = job_with(path, &[], false).unwrap_err().to_string();
    assert!(error.contains("a-0 ends at offset 4, but a write that was interrupted continues at 3"), "{error}");
    fs::remove_dir_all(job_one.directory()).unwrap();
    write(path, &numbered("a-0", 4..5));
    assert_eq!(contents(path)["a-0"].len(), 5);
}

/// At every step: either the next write refuses to complete it, or the appended record comes after its rows.
#[test]
fn write_interrupted_at_any_step_does_not_overlap_what_others_appended() {
    let mut outcomes = BTreeSet::new();
    for number in 0.. {
        let target = TargetDirectory::new(&format!("appended-{number}"));
        let path = &target.0;
        write(path, &numbered("a-0", 0..3));
        let job_one = job(path);
        let written = task(&job_one, 0, &numbered("a-0", 3..5));
        let result = hooked(death_at(number), || job_one.commit(&[written]));
        let mut log = LogWriter::open(path.join("a-0"), LogWriterOptions::default()).unwrap();
        log.append(0, None, Some(b"other"), &[]).unwrap();
        log.close().unwrap();
        match job_with(path, &[], false) {
            Ok(job_two) => {
                job_two.abort().unwrap();
                assert_sound(path);
                outcomes.insert("complete");
            }
            Err(error) => {
                assert!(error.to_string().contains("a-0 ends at offset 4, but"), "step {number}: {error}");
                outcomes.insert("refused");
            }
        }
        if result.is_ok() {
            break;
        }
    }
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), ["complete", "refused"]);
}

#[test]
fn commit_fails_while_a_log_writer_has_one_of_its_partitions() {
    for (overwrite, step) in [(false, "plan"), (false, "planned"), (true, "planned")] {
        let target = TargetDirectory::new(&format!("log-writer-{overwrite}-{step}"));
        let path = &target.0;
        write(path, &numbered("a-0", 0..3));
        let job = job_with(path, &[], overwrite).unwrap();
        let written = task(&job, 0, &numbered("a-0", 3..5));
        let (sender, receiver) = std::sync::mpsc::channel();
        let partition = path.join("a-0");
        let open = move || sender.send(LogWriter::open(&partition, LogWriterOptions::default()).unwrap()).unwrap();
        let error = hooked(once_before(step, open), || job.commit(&[written])).unwrap_err().to_string();
        assert!(error.contains("another LogWriter or an in-place repair is using this directory"), "{error}");
        receiver.recv().unwrap().close().unwrap();
        assert_eq!(contents(path), expected(&[("a-0", &[0..3])]));
    }
}

/// An error would make the user write the rows again.
#[test]
fn commit_succeeds_if_only_its_files_remain() {
    let target = TargetDirectory::new("remains");
    let job = job(&target.0);
    let written = task(&job, 0, &numbered("a-0", 0..3));
    let plan = job.directory().join("commit.json");
    let mut is_planned = false;
    let hook = move |name: &str| {
        is_planned |= plan.exists();
        if name == "rename" && is_planned && !plan.exists() { Err(io::Error::other("busy")) } else { Ok(()) }
    };
    hooked(hook, || job.commit(&[written])).unwrap();
    assert_eq!(contents(&target.0), expected(&[("a-0", &[0..3])]));
}

#[test]
fn error_after_the_plan_says_that_the_write_is_committed() {
    let target = TargetDirectory::new("planned");
    let job_one = job(&target.0);
    let written = task(&job_one, 0, &numbered("a-0", 0..3));
    let hook = |name: &str| if name == "planned" { Err(io::Error::other("no sync")) } else { Ok(()) };
    let error = hooked(hook, || job_one.commit(&[written])).unwrap_err().to_string();
    assert!(error.contains("no sync") && error.contains("the write is committed; the next write to"), "{error}");
    job(&target.0).abort().unwrap();
    assert_eq!(contents(&target.0), expected(&[("a-0", &[0..3])]));
}

#[test]
fn commit_of_a_living_driver_is_left_to_it() {
    let target = TargetDirectory::new("living");
    let path = &target.0;
    let plan = job(path).directory().join("commit.json");
    fs::write(&plan, r#"{"remove": [], "move": ["a-0"]}"#).unwrap();
    let held = File::open(path).unwrap();
    held.lock().unwrap();
    job(path).abort().unwrap();
    assert!(plan.exists());
    drop(held);
    job(path).abort().unwrap();
    assert_eq!(file_names(path).unwrap(), [""; 0]);
}

#[test]
fn plan_with_other_names_is_refused() {
    let target = TargetDirectory::new("names");
    let path = &target.0;
    let directory = job(path).directory().to_path_buf();
    for plan in [r#"{"remove": ["../a"], "move": []}"#, r#"{"remove": [], "move": ["/etc"]}"#, "{", "{}"] {
        fs::write(directory.join("commit.json"), plan).unwrap();
        let error = job_with(path, &[], false).unwrap_err().to_string();
        assert!(error.starts_with("kbat: this is not the plan of a commit: "), "{error}");
    }
}

/// Two appends of 4 and 5 rows to a partition that has `count` rows.
fn two_jobs(path: &Path, count: i32) -> [(WriteJob, Written); 2] {
    if count > 0 {
        write(path, &numbered("a-0", 0..count));
    }
    let jobs = [job(path), job(path)];
    let runs = [count..count.saturating_add(4), count.saturating_add(4)..count.saturating_add(9)];
    let mut runs = runs.into_iter();
    jobs.map(|job| {
        let written = task(&job, 0, &numbered("a-0", runs.next().unwrap()));
        (job, written)
    })
}

#[test]
fn commits_at_the_same_time_come_one_after_the_other() {
    for count in [0, 3] {
        let target = TargetDirectory::new(&format!("same-time-{count}"));
        let path = &target.0;
        let [(first, written), (second, also_written)] = two_jobs(path, count);
        let (sender, receiver) = std::sync::mpsc::channel();
        let start_other = move || {
            let other = std::thread::spawn(move || second.commit(&[also_written]).unwrap());
            std::thread::sleep(std::time::Duration::from_millis(200));
            assert!(!other.is_finished());
            sender.send(other).unwrap();
        };
        hooked(once_before("plan", start_other), || first.commit(&[written])).unwrap();
        receiver.recv().unwrap().join().unwrap();
        assert_eq!(contents(path), expected(&[("a-0", &[0..count.saturating_add(9)])]));
        assert_eq!(file_names(path).unwrap(), ["a-0"]);
        assert_sound(path);
    }
}

#[test]
fn commit_that_no_lock_held_back_is_an_error_and_leaves_nothing() {
    for count in [0, 3] {
        let target = TargetDirectory::new(&format!("no-lock-{count}"));
        let path = &target.0;
        let [(first, written), (second, also_written)] = two_jobs(path, count);
        let commit_other = move || second.commit(&[also_written]).unwrap();
        let hook = once_before("epochs", commit_other);
        let error = without_locks(|| hooked(hook, || first.commit(&[written]))).unwrap_err();
        assert!(error.to_string().contains("a concurrent write created this file"), "{error}");
        first.abort().unwrap();
        assert_eq!(file_names(path).unwrap(), ["a-0"]);
        let start = count.saturating_add(4);
        assert_eq!(contents(path), expected(&[("a-0", &[0..count, start..start.saturating_add(5)])]));
        assert_sound(path);
    }
}

#[test]
fn commit_without_hard_links_replaces_nothing_either() {
    for count in [0, 3] {
        let target = TargetDirectory::new(&format!("no-links-{count}"));
        let path = &target.0;
        for (job, written) in two_jobs(path, count) {
            let refuse = |name: &str| match name {
                "link" => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
                _ => Ok(()),
            };
            hooked(refuse, || job.commit(&[written])).unwrap();
        }
        assert_eq!(contents(path), expected(&[("a-0", &[0..count.saturating_add(9)])]));
        assert_sound(path);
    }
}

/// A query that restarts writes its last micro-batch again, wherever the driver died.
#[test]
fn micro_batch_is_written_once() {
    let query = "8f4e2a10-0000-4000-8000-000000000000";
    let mut is_complete = false;
    for number in 0.. {
        let target = TargetDirectory::new(&format!("epoch-{number}"));
        let path = &target.0;
        let prepare = |numbers: Range<i32>| {
            let job = job(path);
            let written = task(&job, 0, &numbered("a-0", numbers));
            (job, [written])
        };
        let commit = |epoch: i64, numbers: Range<i32>| {
            let (job, written) = prepare(numbers);
            job.commit_epoch(&written, query, epoch)
        };
        commit(0, 0..3).unwrap();
        let (job, written) = prepare(3..5);
        is_complete = hooked(death_at(number), || job.commit_epoch(&written, query, 1)).is_ok();
        commit(1, 3..5).unwrap();
        commit(1, 3..5).unwrap();
        commit(2, 5..6).unwrap();
        assert_eq!(contents(path), expected(&[("a-0", &[0..6])]), "step {number}");
        if is_complete {
            break;
        }
    }
    assert!(is_complete);
    let target = TargetDirectory::new("epoch-name");
    let error = job(&target.0).commit_epoch(&[], "../x", 0).unwrap_err();
    assert!(error.to_string().contains("is not the id of a streaming query"));
}

#[test]
fn task_of_many_partitions_opens_few_logs_at_a_time() {
    const RUN: &[Range<i32>] = &[0..20];
    let target = TargetDirectory::new("many");
    let path = &target.0;
    let job = job_with(path, &[("batchSize", "50"), ("segmentBytes", "300")], false).unwrap();
    let mut writer = TaskWriter::new(&job, 0, 0).unwrap().with_limits(8, 100);
    let partitions: Vec<String> = (0..20).map(|partition| format!("a-{partition}")).collect();
    for number in 0..20 {
        let rows: Vec<InputRow> = partitions.iter().flat_map(|name| numbered(name, number..number + 1)).collect();
        writer.write(&arrow(&rows)).unwrap();
        let (logs, waiting_len) = writer.usage();
        assert_eq!(logs, 8);
        assert!(waiting_len <= 100);
    }
    job.commit(&[writer.finish().unwrap()]).unwrap();
    let all: Vec<(&str, &[Range<i32>])> = partitions.iter().map(|name| (name.as_str(), RUN)).collect();
    assert_eq!(contents(path), expected(&all));
    assert_sound(path);
}

#[test]
fn task_of_a_job_that_ended_fails() {
    let target = TargetDirectory::new("ended");
    let job = job(&target.0);
    let mut writer = TaskWriter::new(&job, 0, 0).unwrap();
    writer.write(&arrow(&numbered("a-0", 0..3))).unwrap();
    job.abort().unwrap();
    assert!(writer.finish().unwrap_err().is_not_found());
    assert_eq!(file_names(&target.0).unwrap(), [""; 0]);
}

#[test]
fn task_creates_nothing_while_its_job_ends() {
    for number in 0..3 {
        let target = TargetDirectory::new(&format!("ending-{number}"));
        let job = job(&target.0);
        let mut writer = TaskWriter::new(&job, 0, 0).unwrap();
        writer.write(&arrow(&numbered("a-0", 0..3))).unwrap();
        let mut left = number;
        let abort = move |_: &str| {
            if left == 0 {
                job.abort().unwrap();
            }
            left -= 1;
            Ok(())
        };
        assert!(hooked(abort, || writer.finish()).unwrap_err().is_not_found(), "step {number}");
        assert_eq!(file_names(&target.0).unwrap(), [""; 0], "step {number}");
    }
}

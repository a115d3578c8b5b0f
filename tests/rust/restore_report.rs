//! The report of a restore: a plan equals the restore, and what the new broker would not serve is a warning.

use std::fs;

use kbat::log::Uuid;
use kbat::log::checkpoint::{LeaderEpochs, PartitionMetadata};
use kbat::plan::Selection;
use kbat::restore::RestoreOptions;

use crate::folder::Folder;
use crate::restore::{TIME, batch, restored};
use crate::rewrite::partition;

#[test]
fn restore_warns_of_what_the_new_broker_would_not_serve() {
    let folder = Folder::new("restore-warnings");
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    for number in 0..3 {
        partition(&folder, &format!("source/t-{number}"), &[(0, &batch(0, 5))]);
    }
    let broker = folder.path().join("broker");
    for (number, epoch) in [(0, 2), (1, 3)] {
        let directory = broker.join(format!("t-{number}"));
        fs::create_dir_all(&directory).unwrap();
        PartitionMetadata::new(Uuid([9; 16])).write(directory.join("partition.metadata")).unwrap();
        let mut epochs = LeaderEpochs::new();
        epochs.assign(epoch, 0).unwrap();
        epochs.write(directory.join("leader-epoch-checkpoint")).unwrap();
    }
    let out = folder.path().join("out");
    let options = RestoreOptions { log_directory: Some(broker), ..RestoreOptions::default() };
    let plan = restored(&source, &out, &RestoreOptions { dry_run: true, ..options.clone() });
    let report = restored(&source, &out, &options);
    assert_eq!(report.warnings, plan.warnings);
    let [strays, epochs] = report.warnings.as_slice() else { panic!("{report}") };
    assert!(strays.ends_with("set them aside as strays: t-2"), "{strays}");
    assert!(epochs.ends_with("leader_epoch=0 to replace them: t-0, t-2"), "{epochs}");
    fs::remove_dir_all(&out).unwrap();
    let selection = Selection::default().partitions(&[0]).unwrap();
    let report = restored(&source, &out, &RestoreOptions { selection, leader_epoch: Some(0), ..options });
    assert_eq!(report.warnings, Vec::<String>::new());
}

#[test]
fn restore_plans_the_end_and_the_first_batch_as_it_restores_them() {
    let folder = Folder::new("restore-plan");
    let torn = [batch(20, 2), batch(22, 2)[..70].to_vec()].concat();
    // two empty segments, as compaction leaves them
    let source = partition(&folder, "t-0", &[(0, b""), (5, b""), (20, &torn)]);
    let out = folder.path().join("out");
    let plan = restored(&source, &out, &RestoreOptions { dry_run: true, ..RestoreOptions::default() });
    let report = restored(&source, &out, &RestoreOptions::default());
    assert_eq!(plan.partitions, report.partitions);
    let planned = &plan.partitions[0];
    assert_eq!((planned.tail_bytes, planned.gaps.as_slice()), (70, &[(0, 19)][..]));
    assert_eq!((planned.first_timestamp, planned.leader_epoch), (Some(TIME + 20), Some(3)));
}

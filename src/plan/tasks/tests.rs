use super::*;
use crate::log::{LogWriter, LogWriterOptions};

const MIB: u64 = 1 << 20;

/// The sizes of the pieces of each task.
fn packed(sizes: &[u64], max_len: u64, cores: u64) -> Vec<Vec<u64>> {
    let pieces = sizes.iter().map(|size| Piece { end: *size, ..Piece::default() }).collect();
    let groups = pack(pieces, max_len, cores, None);
    groups.iter().map(|pieces| pieces.iter().map(Piece::size).collect()).collect()
}

#[test]
fn pack_groups_neighbors_up_to_the_bound() {
    let cases: &[(&[u64], &[&[u64]])] = &[
        (&[], &[]),
        (&[10], &[&[10]]),
        (&[25, 3], &[&[25], &[3]]),
        (&[4, 4, 2, 1, 9], &[&[4, 4, 2], &[1, 9]]),
        (&[3, 3, 3, 3, 3, 3], &[&[3, 3, 3], &[3, 3, 3]]),
        (&[6, 6, 6], &[&[6], &[6], &[6]]),
    ];
    for (sizes, tasks) in cases {
        assert_eq!(packed(sizes, 10, 1), *tasks);
    }
}

#[test]
fn pack_gives_every_core_a_task_if_it_is_worth_it() {
    let cases: &[(&[u64], &[&[u64]])] = &[
        (&[2, 1], &[&[2, 1]]),
        (&[3, 2, 3], &[&[3], &[2, 3]]),
        (&[5, 5, 5, 5, 5, 5, 5, 6], &[&[5, 5], &[5, 5], &[5, 5], &[5, 6]]),
        (&[40, 1, 1], &[&[40], &[1, 1]]),
    ];
    for (sizes, tasks) in cases {
        let sizes: Vec<u64> = sizes.iter().map(|size| size * MIB).collect();
        let tasks: Vec<Vec<u64>> = tasks.iter().map(|task| task.iter().map(|size| size * MIB).collect()).collect();
        assert_eq!(packed(&sizes, 256 * MIB, 4), tasks);
    }
}

#[test]
fn pack_limits_the_offsets_of_a_task() {
    let piece = |offset_count| Piece { end: 1, offset_count, ..Piece::default() };
    let groups = pack([3, 0, 0, 3, 1, 4].map(piece).to_vec(), 100, 1, Some(4));
    let counts: Vec<Vec<i64>> =
        groups.iter().map(|pieces| pieces.iter().map(|piece| piece.offset_count).collect()).collect();
    assert_eq!(counts, [vec![3, 0, 0], vec![3, 1], vec![4]]);
}

#[test]
fn groups_apart_have_one_partition_each() {
    let piece = |partition| Piece { topic: Some("a".to_owned()), partition, ..Piece::default() };
    let groups = [[0, 0, 1].map(Some).map(piece).to_vec(), [1, 2].map(Some).map(piece).to_vec()];
    let numbers: Vec<Vec<Option<i32>>> =
        apart(&groups).iter().map(|pieces| pieces.iter().map(|piece| piece.partition).collect()).collect();
    assert_eq!(numbers, [vec![Some(0); 2], vec![Some(1)], vec![Some(1)], vec![Some(2)]]);
}

#[test]
fn windows_are_no_smaller_for_a_tenth() {
    let options = ReadOptions::default();
    assert!(window_len(197 * MIB, 2, &options) >= 100 * MIB);
    assert_eq!(window_len(66 * MIB, 3, &options), MIN_CUT_LEN);
    assert_eq!(window_len(1 << 40, 1, &options), 384 * MIB);
    assert_eq!(window_len(0, 0, &options), MIN_CUT_LEN);
    let batches = ReadOptions { view: PlanView::Batches, ..ReadOptions::default() };
    assert_eq!(window_len(1 << 40, 1, &batches), 16 * 384 * MIB);
    let many = ReadOptions { min_partitions: Some(66), ..ReadOptions::default() };
    assert_eq!(window_len(66 * MIB, 3, &many), MIB);
    let small = ReadOptions { max_partition_bytes: 1, ..ReadOptions::default() };
    assert_eq!(window_len(66 * MIB, 3, &small), 1);
}

/// A task cannot be cancelled while it reads headers, so none may read the whole log.
#[test]
fn totals_of_a_large_log_are_many_tasks() {
    let directory = std::env::temp_dir().join(format!("kbat-totals-{}", std::process::id())).join("a-0");
    let _ = std::fs::remove_dir_all(&directory);
    let options = LogWriterOptions { segment_bytes: 4096, batch_size: 1024, ..LogWriterOptions::default() };
    let mut log = LogWriter::open(&directory, options).unwrap();
    for _ in 0..400 {
        log.append(0, None, Some(&[0; 500]), &[]).unwrap();
    }
    log.close().unwrap();
    let path = directory.to_str().unwrap().to_owned();
    let given = [("path".to_owned(), path), ("maxPartitionBytes".to_owned(), "2048".to_owned())];
    let read = Read::new(&given, &[], &["offset".to_owned()]).unwrap().totals(vec![Total::Count], vec![]).unwrap();
    let tasks = read.plan(true, &mut Vec::new()).unwrap();
    let sizes = tasks.iter().map(|task| task.pieces().iter().map(Piece::size).sum::<u64>());
    assert!(sizes.clone().all(|size| size <= 16 * 2048), "{:?}", sizes.collect::<Vec<_>>());
    assert!((7..20).contains(&tasks.len()), "{}", tasks.len());
    std::fs::remove_dir_all(directory.parent().unwrap()).unwrap();
}

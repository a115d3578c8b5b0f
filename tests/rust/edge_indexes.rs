//! Invalid index and snapshot files, and the tables of Kafka's own tests (`OffsetIndexTest`, `TimeIndexTest`,
//! `TransactionIndexTest`, `LogSegmentTest`).

use std::fs;
use std::path::Path;

use kbat::log::index::{
    AbortedTransaction, OffsetEntry, OffsetIndex, SegmentIndexer, TimeEntry, TimeIndex, TransactionIndex,
};
use kbat::log::producer::{ProducerEntry, ProducerSnapshot};
use kbat::{BatchBuilder, ErrorKind};

use crate::data::first;
use crate::folder::Folder;

fn offsets(base_offset: i64, entries: &[(i64, i32)]) -> Vec<u8> {
    let encode = |(offset, position): &(i64, i32)| {
        OffsetEntry { offset: *offset, position: *position }.encode(base_offset).unwrap()
    };
    entries.iter().flat_map(encode).collect()
}

fn times(base_offset: i64, entries: &[(i64, i64)]) -> Vec<u8> {
    let encode = |(timestamp, offset): &(i64, i64)| {
        TimeEntry { timestamp: *timestamp, offset: *offset }.encode(base_offset).unwrap()
    };
    entries.iter().flat_map(encode).collect()
}

fn pair(entry: OffsetEntry) -> (i64, i32) {
    (entry.offset, entry.position)
}

fn time_pair(entry: TimeEntry) -> (i64, i64) {
    (entry.timestamp, entry.offset)
}

fn is_invalid_file(error: &kbat::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidFile(_)) && error.path().is_some()
}

#[test]
fn offset_index_lookup_is_the_floor() {
    let folder = Folder::new("offset-floor");
    // more entries than the warm end of the index, so that the search uses both halves
    let entries: Vec<(i64, i32)> = (1..=3000).map(|i| (45 + i * 3, i as i32 * 100)).collect();
    let path = folder.file("00000000000000000045.index", offsets(45, &entries));
    let index = OffsetIndex::open(&path, None).unwrap();
    assert_eq!((index.base_offset(), index.entry_count()), (45, 3000));
    for offset in 0..10_000 {
        let floor = entries.iter().rev().find(|entry| entry.0 <= offset).copied().unwrap_or((45, 0));
        assert_eq!(pair(index.lookup(offset).unwrap()), floor, "{offset}");
    }
    assert_eq!(pair(index.lookup(i64::MIN).unwrap()), (45, 0));
    assert_eq!(pair(index.lookup(i64::MAX).unwrap()), (9045, 300_000));
}

#[test]
fn offset_index_fetch_upper_bound_is_the_first_entry_beyond() {
    let folder = Folder::new("offset-bound");
    let entries = [(45, 0), (46, 10), (47, 23), (48, 37)];
    let path = folder.file("a", offsets(45, &entries));
    let index = OffsetIndex::open(&path, Some(45)).unwrap();
    let bound = |from: usize, size| {
        let from = OffsetEntry { offset: entries[from].0, position: entries[from].1 };
        index.fetch_upper_bound(from, size).unwrap().map(pair)
    };
    let cases = [(0, 5, 1), (0, 10, 1), (0, 23, 2), (0, 22, 2), (1, 24, 3)];
    for (from, size, to) in cases {
        assert_eq!(bound(from, size), Some(entries[to]), "{from} {size}");
    }
    for (from, size) in [(3, 1), (0, 200), (1, 200), (0, u32::MAX)] {
        assert_eq!(bound(from, size), None, "{from} {size}");
    }
    let empty = OffsetIndex::open(folder.file("b", ""), Some(45)).unwrap();
    assert!(empty.fetch_upper_bound(OffsetEntry { offset: 0, position: 0 }, 5).unwrap().is_none());
}

#[test]
fn offset_index_entries_truncate_below_an_offset() {
    let all: Vec<_> = (1..=9).map(|i| OffsetEntry { offset: i, position: i as i32 }).collect();
    for (offset, last) in [(12, Some(9)), (10, Some(9)), (9, Some(8)), (5, Some(4)), (2, Some(1)), (1, None), (0, None)]
    {
        let mut entries = all.clone();
        OffsetEntry::truncate_to(&mut entries, offset);
        assert_eq!(entries.last().map(|entry| entry.offset), last, "{offset}");
    }
}

#[test]
fn offset_index_base_offset_comes_from_any_segment_file_name() {
    let folder = Folder::new("offset-names");
    let content = offsets(0, &[(7, 100)]);
    for name in ["00000000000000000042.index", "42.index.deleted", "42.index.swap", "42.index.cleaned", "42_AAAA.index"]
    {
        let index = OffsetIndex::open(folder.file(name, &content), None).unwrap();
        assert_eq!(pair(index.last_entry().unwrap().unwrap()), (49, 100), "{name}");
        assert_eq!(pair(OffsetIndex::open(index.path(), Some(1000)).unwrap().lookup(5000).unwrap()), (1007, 100));
    }
    let error = OffsetIndex::open(folder.file("index", &content), None).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument(message) if message.contains("base_offset")), "{error}");
    assert!(matches!(TimeIndex::open(folder.path(), None).unwrap_err().kind(), ErrorKind::Io(_)));
}

#[test]
fn offset_index_of_a_running_broker_ends_at_its_zeros() {
    let folder = Folder::new("offset-zeros");
    let entries: Vec<(i64, i32)> = (1..=50).map(|i| (i * 2, i as i32 * 10)).collect();
    for count in [0, 1, 2, 49, 50] {
        for zeros in [0, 8, 16, 24, 80, 8000] {
            let mut content = offsets(0, &entries[..count]);
            content.resize(content.len() + zeros, 0);
            let index = OffsetIndex::open(folder.file("0.index", content), None).unwrap();
            // a single entry of zeros may be valid
            let lone = count == 0 && zeros == 8;
            assert_eq!(index.entry_count(), if lone { 1 } else { count as u64 }, "{count} {zeros}");
            assert_eq!(index.slot_count() as usize, count + zeros / 8);
            let last = entries[..count].last().copied().unwrap_or((0, 0));
            assert_eq!(pair(index.lookup(i64::MAX).unwrap()), last, "{count} {zeros}");
            index.sanity_check().unwrap();
        }
    }
}

#[test]
fn offset_index_first_entry_may_be_of_the_base_offset() {
    let folder = Folder::new("offset-first");
    let index = OffsetIndex::open(folder.file("5.index", offsets(5, &[(5, 0), (6, 70), (9, 140)])), None).unwrap();
    assert_eq!(index.entries().unwrap().into_iter().map(pair).collect::<Vec<_>>(), [(5, 0), (6, 70), (9, 140)]);
    index.sanity_check().unwrap();
}

#[test]
fn index_of_a_terabyte_is_searched_without_reading_it() {
    let folder = Folder::new("terabyte");
    let path = folder.file("0.index", offsets(0, &[(7, 1), (9, 2)]));
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let index = OffsetIndex::open(&path, None).unwrap();
    assert_eq!((index.entry_count(), index.slot_count()), (2, 1 << 37));
    assert_eq!(pair(index.lookup(8).unwrap()), (7, 1));
    let path = folder.file("0.timeindex", times(0, &[(7, 1), (9, 2)]));
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(3 << 38).unwrap();
    let index = TimeIndex::open(&path, None).unwrap();
    assert_eq!((index.entry_count(), time_pair(index.lookup(8).unwrap())), (2, (7, 1)));
}

#[test]
fn index_with_a_cut_entry_works_on_the_whole_ones() {
    let folder = Folder::new("cut");
    let whole = offsets(0, &[(3, 100), (6, 200), (9, 300)]);
    for len in 0..whole.len() {
        let index = OffsetIndex::open(folder.file("0.index", &whole[..len]), None).unwrap();
        let count = len / 8;
        assert_eq!(index.entries().unwrap().len(), count);
        assert_eq!(index.lookup(100).unwrap().position, count as i32 * 100);
        let checked = index.sanity_check();
        assert_eq!(checked.is_ok(), len % 8 == 0, "{len}");
        assert!(checked.is_ok() || is_invalid_file(&checked.unwrap_err()));
    }
    let whole = times(0, &[(30, 3), (60, 6), (90, 9)]);
    for len in 0..whole.len() {
        let index = TimeIndex::open(folder.file("0.timeindex", &whole[..len]), None).unwrap();
        assert_eq!(index.entries().unwrap().len(), len / 12);
        assert_eq!(index.lookup(100).unwrap().offset, (len / 12) as i64 * 3);
        assert_eq!(index.sanity_check().is_ok(), len % 12 == 0, "{len}");
    }
}

#[test]
fn index_damaged_anyhow_gives_an_answer() {
    let folder = Folder::new("damaged");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..300 {
        let mut content: Vec<u8> = (0..random() % 400).map(|_| random() as u8).collect();
        if round % 2 == 0 {
            content.iter_mut().filter(|byte| **byte < 200).for_each(|byte| *byte = 0);
        }
        let index = OffsetIndex::open(folder.file("7.index", &content), None).unwrap();
        assert!(index.entries().unwrap().len() as u64 <= index.entry_count());
        let time_index = TimeIndex::open(folder.file("7.timeindex", &content), None).unwrap();
        for target in [i64::MIN, -1, 0, 7, 8, random() as i64, i64::MAX] {
            index.lookup(target).unwrap();
            time_index.lookup(target).unwrap();
            let entry = OffsetEntry { offset: target, position: random() as i32 };
            index.fetch_upper_bound(entry, random() as u32).unwrap();
        }
        let _ = (index.sanity_check(), time_index.sanity_check(), time_index.entries().unwrap());
    }
}

#[test]
fn index_that_gets_shorter_while_open_ends_there() {
    let folder = Folder::new("shorter");
    let path = folder.file("0.index", offsets(0, &(1..100).map(|i| (i, i as i32)).collect::<Vec<_>>()));
    let index = OffsetIndex::open(&path, None).unwrap();
    for len in [80, 12, 0] {
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
        assert_eq!(index.entries().unwrap().len() as u64, len / 8);
        assert_eq!(index.lookup(1000).unwrap().offset, (len / 8) as i64);
    }
}

#[test]
fn time_index_lookup_is_the_floor() {
    let folder = Folder::new("time-floor");
    let entries: Vec<(i64, i64)> = (1..=30).map(|i| (i * 10, 45 + i * 10)).collect();
    let index = TimeIndex::open(folder.file("45.timeindex", times(45, &entries)), None).unwrap();
    for (timestamp, found) in [(9, (-1, 45)), (10, (10, 55)), (25, (20, 65)), (30, (30, 75)), (9999, (300, 345))] {
        assert_eq!(time_pair(index.lookup(timestamp).unwrap()), found, "{timestamp}");
    }
    assert_eq!(time_pair(index.last_entry().unwrap()), (300, 345));
    let empty = TimeIndex::open(folder.file("46.timeindex", ""), None).unwrap();
    assert_eq!(time_pair(empty.last_entry().unwrap()), (-1, 46));
    assert_eq!(time_pair(empty.lookup(5).unwrap()), (-1, 46));
    let mut truncated = index.entries().unwrap();
    TimeEntry::truncate_to(&mut truncated, 55);
    assert!(truncated.is_empty());
}

#[test]
fn index_sanity_check_says_what_kafkas_says() {
    let folder = Folder::new("sanity");
    let time = |content: Vec<u8>| TimeIndex::open(folder.file("45.timeindex", content), None).unwrap().sanity_check();
    let offset = |content: Vec<u8>| OffsetIndex::open(folder.file("45.index", content), None).unwrap().sanity_check();
    let negative = (-1_i32).to_be_bytes();
    time(times(45, &[(10, 46), (20, 50)])).unwrap();
    assert!(time(times(45, &[(10, 46), (9, 50)])).unwrap_err().to_string().contains("timestamp"));
    assert!(time([&10_i64.to_be_bytes()[..], &negative].concat()).unwrap_err().to_string().contains("base offset"));
    // a time index that ends in zeros is only detected as corrupt if its first timestamp is above 0
    time([times(45, &[(10, 46)]), vec![0; 12]].concat()).unwrap_err();
    time(vec![0; 24]).unwrap();
    offset([offsets(45, &[(46, 1)]), vec![0; 16]].concat()).unwrap();
    assert!(is_invalid_file(&offset([&negative[..], &[0; 4]].concat()).unwrap_err()));
}

fn aborted() -> Vec<AbortedTransaction> {
    let entries = [(0, 0, 10, 11), (1, 5, 15, 13), (2, 18, 35, 25), (3, 32, 50, 40)];
    entries.into_iter().map(|(id, first, last, stable)| AbortedTransaction::new(id, first, last, stable)).collect()
}

fn transaction_index(folder: &Folder, entries: &[AbortedTransaction]) -> TransactionIndex {
    let content: Vec<u8> = entries.iter().flat_map(AbortedTransaction::encode).collect();
    TransactionIndex::open(folder.file("0.txnindex", content)).unwrap()
}

#[test]
fn transaction_index_collects_what_a_reader_must_know() {
    let folder = Folder::new("collect");
    let all = aborted();
    let index = transaction_index(&folder, &all);
    let cases = [
        (0, 100, &all[..], false),
        (0, 32, &all[..3], true),
        (0, 35, &all[..], true),
        (10, 35, &all[..], true),
        (11, 35, &all[1..], true),
        (20, 41, &all[2..], false),
    ];
    for (fetch_offset, upper_bound, entries, complete) in cases {
        let found = index.collect(fetch_offset, upper_bound).unwrap();
        assert_eq!(found, (entries.to_vec(), complete), "{fetch_offset} {upper_bound}");
    }
}

#[test]
fn transaction_index_entries_truncate_at_a_marker() {
    for (offset, kept) in [(51, 4), (50, 3), (11, 1), (10, 0)] {
        let mut entries = aborted();
        AbortedTransaction::truncate_to(&mut entries, offset);
        assert_eq!(entries, aborted()[..kept], "{offset}");
    }
}

#[test]
fn transaction_index_reads_one_byte_of_the_version() {
    let folder = Folder::new("txn-version");
    let whole: Vec<u8> = aborted().iter().flat_map(AbortedTransaction::encode).collect();
    let with = |place: usize, byte: u8| {
        let mut content = whole.clone();
        content[place] = byte;
        TransactionIndex::open(folder.file("0.txnindex", content)).unwrap().entries()
    };
    assert_eq!(with(1, 9).unwrap()[0].version, 9);
    assert_eq!(with(34, 0xff).unwrap()[1].version, -256);
    let error = with(34, 1).unwrap_err();
    assert!(is_invalid_file(&error) && error.position().byte == Some(34), "{error}");
}

#[test]
fn transaction_index_cut_entry_is_not_looked_at() {
    let folder = Folder::new("txn-cut");
    let whole: Vec<u8> = aborted().iter().flat_map(AbortedTransaction::encode).collect();
    for len in 0..=whole.len() {
        let index = TransactionIndex::open(folder.file("0.txnindex", &whole[..len])).unwrap();
        assert_eq!(index.entries().unwrap(), aborted()[..len / 34], "{len}");
        assert_eq!(index.entry_count(), (len / 34) as u64);
    }
    let index = transaction_index(&folder, &aborted());
    index.sanity_check(10).unwrap();
    assert!(is_invalid_file(&index.sanity_check(100).unwrap_err()));
}

#[test]
fn index_entry_out_of_range_is_refused() {
    let pairs = [
        (0, -2_147_483_648),
        (0, 2_147_483_648),
        (1, 0),
        (100, 10),
        (2_147_483_648, 0),
        (-2_147_483_648, 0),
        (2_147_483_648, 4_294_967_296),
        (i64::MIN, i64::MAX),
        (i64::MAX, i64::MIN),
    ];
    for (base_offset, offset) in pairs {
        assert!(OffsetEntry { offset, position: 0 }.encode(base_offset).is_err(), "{base_offset} {offset}");
        assert!(TimeEntry { timestamp: 0, offset }.encode(base_offset).is_err(), "{base_offset} {offset}");
    }
    assert!(OffsetEntry { offset: i64::from(i32::MAX), position: 0 }.encode(0).is_ok());
}

/// A batch of one record with a value of a size in bytes.
fn batch(offset: i64, timestamp: i64, value_len: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new().base_offset(offset);
    builder.append(timestamp, None, Some(&vec![b'x'; value_len])).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

/// Indexes batches and returns (offset entries, time entries without the last one).
fn observe(indexer: &mut SegmentIndexer, bytes: &[u8]) -> kbat::Result<(usize, usize)> {
    let (mut offsets, mut times) = (0, 0);
    for batch in kbat::batches(bytes) {
        let batch = batch?;
        let entries = indexer.observe(&batch)?;
        offsets += usize::from(entries.offset.is_some());
        times += usize::from(entries.time.is_some());
    }
    Ok((offsets, times))
}

#[test]
fn indexer_density_is_kafkas() {
    let one = batch(0, 0, 10).len() as u64;
    let log: Vec<u8> = (0..30).flat_map(|i| batch(i, 1000 + i, 10)).collect();
    let count = |interval| observe(&mut SegmentIndexer::new(0, interval, 1 << 20), &log).unwrap();
    assert_eq!(count(2 * one - 1), (14, 14));
    assert_eq!(count(0), (29, 29));
    assert_eq!(count(one), (14, 14));
    assert_eq!(count(one - 1), (29, 29));
    assert_eq!(count(1 << 20), (0, 0));
}

#[test]
fn indexer_notes_the_first_batch_with_the_largest_timestamp() {
    let log: Vec<u8> = [5, 9, 9, 3].into_iter().enumerate().flat_map(|(i, time)| batch(i as i64, time, 1)).collect();
    let mut indexer = SegmentIndexer::new(0, 0, 1 << 20);
    assert_eq!(observe(&mut indexer, &log).unwrap(), (3, 1));
    assert_eq!(time_pair(indexer.max_timestamp()), (9, 1));
    assert_eq!(indexer.finish(), None);
    let mut indexer = SegmentIndexer::new(0, 1 << 20, 1 << 20);
    observe(&mut indexer, &log).unwrap();
    assert_eq!(indexer.finish().map(time_pair), Some((9, 1)));
    assert_eq!(indexer.finish(), None);
    assert_eq!(SegmentIndexer::new(7, 0, 100).finish(), None);
}

#[test]
fn indexer_is_full_one_time_entry_early() {
    let log: Vec<u8> = (0..5).flat_map(|i| batch(i, 1000 + i, 10)).collect();
    // room for 6 offset entries and 4 time entries, one of which is reserved for the end
    let mut indexer = SegmentIndexer::new(0, 0, 48);
    assert!(!indexer.is_full());
    let log_but_last = &log[..log.len() / 5 * 4];
    assert_eq!(observe(&mut indexer, log_but_last).unwrap(), (3, 3));
    assert!(indexer.is_full());
    let mut again = SegmentIndexer::new(0, 0, 48);
    assert!(observe(&mut again, &log).unwrap_err().to_string().contains("full"));
}

#[test]
fn indexer_refuses_offsets_that_an_index_can_not_hold() {
    let low = batch(9, 0, 1);
    assert!(SegmentIndexer::new(10, 0, 100).observe(&first(&low)).is_err());
    let high = batch(1 << 31, 0, 1);
    assert!(SegmentIndexer::new(0, 0, 100).observe(&first(&high)).is_err());
    assert!(SegmentIndexer::new(1, 0, 100).observe(&first(&high)).is_ok());
    let log = [batch(5, 0, 1), batch(6, 0, 1), batch(6, 0, 1)].concat();
    assert!(observe(&mut SegmentIndexer::new(0, 0, 100), &log).is_err());
}

fn snapshot() -> ProducerSnapshot {
    let entry = ProducerEntry {
        producer_id: 1,
        producer_epoch: 2,
        last_sequence: 3,
        last_offset: 100,
        offset_delta: 5,
        timestamp: -1,
        coordinator_epoch: -1,
        current_txn_first_offset: Some(90),
    };
    ProducerSnapshot { entries: vec![entry, ProducerEntry { current_txn_first_offset: None, ..entry }] }
}

#[test]
fn snapshot_sequences_wrap() {
    let entry = snapshot().entries[0];
    assert_eq!((entry.first_sequence(), entry.first_offset()), (i32::MAX - 1, 95));
    assert_eq!(ProducerEntry { last_sequence: 5, ..entry }.first_sequence(), 0);
}

#[test]
fn snapshot_is_read_as_written() {
    let folder = Folder::new("snapshot");
    let path = folder.path().join("00000000000000000101.snapshot");
    for snapshot in [snapshot(), ProducerSnapshot::default()] {
        snapshot.write(&path).unwrap();
        assert_eq!(ProducerSnapshot::read(&path).unwrap(), snapshot);
    }
    assert_eq!(fs::read(&path).unwrap().len(), 10);
}

#[test]
fn snapshot_damaged_anywhere_is_refused() {
    let whole = snapshot().encode().unwrap();
    for len in 0..whole.len() {
        let error = ProducerSnapshot::parse(&whole[..len]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Crc { .. }), "{len}: {error}");
    }
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        let error = ProducerSnapshot::parse(&damaged).unwrap_err();
        let expected = if place < 2 {
            matches!(error.kind(), ErrorKind::InvalidFile(_))
        } else {
            matches!(error.kind(), ErrorKind::Crc { .. })
        };
        assert!(expected, "{place}: {error}");
    }
}

#[test]
fn snapshot_count_that_lies_is_refused() {
    for (count, truncated) in [(i32::MAX, true), (3, true), (-1, false)] {
        let mut bytes = snapshot().encode().unwrap();
        bytes[6..10].copy_from_slice(&count.to_be_bytes());
        let crc = crc_fast::crc32_iscsi(&bytes[6..]);
        bytes[2..6].copy_from_slice(&crc.to_be_bytes());
        let error = ProducerSnapshot::parse(&bytes).unwrap_err();
        assert_eq!(matches!(error.kind(), ErrorKind::Truncated), truncated, "{count}: {error}");
    }
    assert!(ProducerSnapshot::read(Path::new("/nonexistent/5.snapshot")).is_err());
}

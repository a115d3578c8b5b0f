//! Salvage keeps exactly the complete batches of damaged files, with their offsets, and reports the holes.

#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "Kafka's names are in lower case")]

use std::fs;
use std::path::Path;

use kbat::Progress;
use kbat::repair::{RepairReport, SalvageOptions, salvage};

use crate::data::{data_dir, files};
use crate::recovery::{TempDir, content, copy_partition, partition_files, whole_partitions};

const LOG: &str = "00000000000000000000.log";

/// The result of a test: the bytes of the salvaged log, and the report.
fn salvaged(name: &str, bytes: &[u8]) -> (Vec<u8>, RepairReport) {
    let directory = TempDir::new(&format!("salvage-{name}"));
    let (path, out) = (directory.join(LOG), directory.join("out"));
    fs::write(&path, bytes).unwrap();
    let report = salvage(&path, &out, &SalvageOptions::default(), &mut Progress::none()).unwrap();
    (fs::read(out.join(LOG)).unwrap(), report)
}

/// The error message of a failed salvage.
fn refused(name: &str, bytes: &[u8]) -> String {
    let directory = TempDir::new(&format!("salvage-{name}"));
    let (path, out) = (directory.join(LOG), directory.join("out"));
    fs::write(&path, bytes).unwrap();
    let error = salvage(&path, &out, &SalvageOptions::default(), &mut Progress::none()).unwrap_err();
    assert!(!out.exists());
    error.to_string()
}

/// Start of each batch, and the end.
fn positions(bytes: &[u8]) -> Vec<usize> {
    let mut positions: Vec<usize> = kbat::batches(bytes).map(|batch| batch.unwrap().position() as usize).collect();
    positions.push(bytes.len());
    positions
}

fn sample(case: &str) -> Vec<u8> {
    fs::read(data_dir().join("corpus").join(case).join(LOG)).unwrap()
}

/// Position, length, reason, offsets lost.
type Hole = (usize, usize, &'static str, Option<i64>, Option<i64>);

fn holes(report: &RepairReport) -> Vec<Hole> {
    let hole = |range: &kbat::repair::DroppedRange| {
        (range.position as usize, range.length as usize, range.reason, range.first_offset, range.last_offset)
    };
    report.dropped.iter().map(hole).collect()
}

#[test]
fn salvage_whole_partition_is_the_same_log() {
    let directory = TempDir::new("salvage-whole");
    let mut logs = 0;
    for case in whole_partitions() {
        let out = directory.join("out");
        let report = salvage(&case, &out, &SalvageOptions::default(), &mut Progress::none()).unwrap();
        assert!(report.dropped.iter().all(|range| range.reason == "zero_tail"), "{}: {report}", case.display());
        for name in partition_files(&case).iter().filter(|name| name.ends_with(".log")) {
            let (found, expected) = (fs::read(out.join(name)).unwrap(), fs::read(case.join(name)).unwrap());
            let valid: usize = kbat::batches(&expected).map(|batch| batch.unwrap().size()).sum();
            assert!(found == expected[..valid], "{} {name}", case.display());
            logs += 1;
        }
        fs::remove_dir_all(&out).unwrap();
    }
    assert_eq!(logs, 175);
}

#[test]
fn salvage_every_kind_of_damage_keeps_the_other_batches() {
    let bytes = sample("crash-index");
    let at = positions(&bytes);
    let (from, to) = (at[7], at[8]);
    let bases: Vec<i64> = kbat::batches(&bytes[from..to]).map(|batch| batch.unwrap().base_offset().unwrap()).collect();
    let (first, last) = (bases[0], kbat::batches(&bytes[from..to]).next().unwrap().unwrap().last_offset());
    let without = [&bytes[..from], &bytes[to..]].concat();
    let damage = |name: &str, damage: fn(&mut [u8])| {
        let mut damaged = bytes.clone();
        damage(&mut damaged[from..to]);
        let (found, report) = salvaged(name, &damaged);
        assert!(found == without, "{name}: {report}");
        (holes(&report), report)
    };
    let expected = |reason| vec![(from, to - from, reason, Some(first), Some(last))];
    assert_eq!(damage("payload", |batch| batch[100] ^= 4).0, expected("crc"));
    assert_eq!(damage("zeros", |batch| batch.fill(0)).0, expected("batch_length"));
    assert_eq!(damage("magic", |batch| batch[16] = 9).0, expected("unsupported_magic"));
    assert_eq!(damage("ones", |batch| batch.fill(0xff)).0, expected("batch_length"));
    assert_eq!(damage("long", |batch| batch[9] ^= 0x40).0[0].0, from);
    assert_eq!(damage("short", |batch| batch[11] ^= 3).0, expected("crc"));
    // the checksum does not cover the offset: only the adjacent batches show that it is wrong
    assert_eq!(damage("offset-up", |batch| batch[5] = 9).0, expected("offset_order"));
    assert_eq!(damage("offset-down", |batch| batch[7] = 0).0, expected("offset_order"));
}

#[test]
fn salvage_cut_inserted_and_doubled_bytes() {
    let bytes = sample("crash-index");
    let at = positions(&bytes);
    let name_of = |case: &str| format!("bytes-{case}");

    let (found, report) = salvaged(&name_of("cut"), &bytes[..at[9] + 50]);
    assert!(found == bytes[..at[9]]);
    assert_eq!(holes(&report)[0].2, "partial_batch");
    assert_eq!(holes(&report)[0].4, None);

    let garbage: Vec<u8> = (0..997_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (found, report) = salvaged(&name_of("garbage"), &[&bytes[..at[9]], &garbage, &bytes[at[9]..]].concat());
    assert!(found == bytes);
    let [(position, length, _, first, last)] = holes(&report)[..] else { panic!("{report}") };
    assert_eq!((position, length, first, last), (at[9], 997, None, None));

    let doubled = [&bytes[..at[9]], &bytes[at[8]..at[9]], &bytes[at[9]..]].concat();
    let (found, report) = salvaged(&name_of("doubled"), &doubled);
    assert!(found == bytes);
    assert_eq!(holes(&report), [(at[9], at[9] - at[8], "offset_order", None, None)]);

    let (found, report) = salvaged(&name_of("removed"), &[&bytes[..at[9] - 200], &bytes[at[9]..]].concat());
    assert!(found == [&bytes[..at[8]], &bytes[at[9]..]].concat());
    assert_eq!(holes(&report)[0].0, at[8]);

    let (found, report) = salvaged(&name_of("zeros"), &[&bytes[..], &[0; 4096]].concat());
    assert!(found == bytes);
    assert_eq!(holes(&report)[0].2, "zero_tail");

    assert!(refused(&name_of("nothing"), &garbage).contains("no complete batch was found"));
    assert!(
        refused(&name_of("gzip"), b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03abcdefghijk").contains("gzip-compressed")
    );
}

/// No checksum covers a stored offset: if any of its bits flips, at most its batch is lost.
#[test]
fn salvage_keeps_all_but_the_batch_whose_stored_offset_is_corrupt() {
    let batches: Vec<Vec<u8>> = (0..12)
        .map(|number| {
            let mut builder = kbat::BatchBuilder::new().base_offset(1000 + 3 * number);
            for _ in 0..3 {
                builder.append(1_700_000_000_000 + number, Some(b"key"), Some(b"value")).unwrap();
            }
            let mut bytes = Vec::new();
            builder.finish_into(&mut bytes).unwrap();
            bytes
        })
        .collect();
    let bytes = batches.concat();
    let at = positions(&bytes);
    let directory = TempDir::new("salvage-flipped-offsets");
    for flipped in [0, 1, 5, 11] {
        for bit in 0..64 {
            let name = format!("{flipped}x{bit}-0");
            let (partition, out) = (directory.join(&format!("f{name}")), directory.join(&format!("o{name}")));
            fs::create_dir_all(&partition).unwrap();
            let mut corrupt = bytes.clone();
            corrupt[at[flipped] + bit / 8] ^= 1 << (bit % 8);
            fs::write(partition.join("00000000000000001000.log"), &corrupt).unwrap();
            let report = salvage(&partition, &out, &SalvageOptions::default(), &mut Progress::none()).unwrap();
            let kept: u64 = report.segments.iter().map(|segment| segment.batch_count).sum();
            assert!(kept >= 11, "bit {bit} of batch {flipped}: {kept} of 12 batches kept");
        }
    }
}

#[test]
fn salvage_batch_with_a_right_checksum_and_records_that_cannot_be_read_is_a_hole() {
    let good = |offset: i64| {
        let mut bytes = Vec::new();
        let mut builder = kbat::BatchBuilder::new().base_offset(offset);
        builder.append(1000 + offset, Some(b"key"), Some(b"value")).unwrap();
        builder.finish_into(&mut bytes).unwrap();
        bytes
    };
    let mut bad = good(1);
    bad[61] = 0x40; // the record's length
    let crc = crc_fast::crc32_iscsi(&bad[21..]);
    bad[17..21].copy_from_slice(&crc.to_be_bytes());
    let (found, report) = salvaged("records", &[good(0), bad.clone(), good(2)].concat());
    assert!(found == [good(0), good(2)].concat());
    assert_eq!(holes(&report)[0], (bad.len(), bad.len(), "invalid_value", Some(1), Some(1)));
}

#[test]
fn salvage_never_takes_a_batch_inside_a_record() {
    let inner = sample("tiny-batches");
    let outer = |offset: i64, value: &[u8]| {
        let mut bytes = Vec::new();
        let mut builder = kbat::BatchBuilder::new().base_offset(offset);
        builder.append(1000, None, Some(value)).unwrap();
        builder.finish_into(&mut bytes).unwrap();
        bytes
    };
    let mut damaged = outer(0, &inner);
    let len = damaged.len();
    damaged[30] ^= 1;
    let (found, report) = salvaged("inner", &[damaged, outer(1, b"after")].concat());
    assert!(found == outer(1, b"after"), "{report}");
    assert_eq!(holes(&report), [(0, len, "crc", Some(0), Some(0))]);
}

#[test]
fn salvage_partition_goes_on_after_a_fault_in_the_middle() {
    let directory = TempDir::new("salvage-partition");
    let (place, out) = (directory.join("partition"), directory.join("out"));
    copy_partition(&data_dir().join("corpus/txn-none"), &place);
    let segment = place.join("00000000000000000125.log");
    let mut bytes = fs::read(&segment).unwrap();
    let at = positions(&bytes);
    bytes[at[9] + 70] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let before = content(&place);
    let report = salvage(&place, &out, &SalvageOptions::default(), &mut Progress::none()).unwrap();
    assert!(content(&place) == before);
    assert_eq!((report.end_offset, report.segments.len(), report.dropped.len()), (342, 8, 1));
    for name in partition_files(&place).iter().filter(|name| name.ends_with(".log")) {
        let (found, expected) = (fs::read(out.join(name)).unwrap(), fs::read(place.join(name)).unwrap());
        let is_damaged = segment.ends_with(name);
        assert!(found == if is_damaged { [&bytes[..at[9]], &bytes[at[10]..]].concat() } else { expected }, "{name}");
    }
    let holes = fs::read_to_string(out.join("holes.jsonl")).unwrap();
    let hole: serde_json::Value = serde_json::from_str(&holes).unwrap();
    assert_eq!((hole["position"].as_u64(), hole["reason"].as_str()), (Some(at[9] as u64), Some("crc")));
    assert!(out.join("00000000000000000342.snapshot").exists() && out.join("partition.metadata").exists());
    assert!(directory.join("out").read_dir().unwrap().all(|entry| !is_partial(&entry.unwrap().path())));
}

fn is_partial(path: &Path) -> bool {
    path.to_str().unwrap().contains("partial")
}

#[test]
fn salvage_of_what_a_broker_cut_is_more_than_the_broker_kept() {
    let directory = TempDir::new("salvage-flip");
    let case = data_dir().join("corpus/crash-flip");
    let report = salvage(&case, directory.join("out"), &SalvageOptions::default(), &mut Progress::none()).unwrap();
    let recovered = fs::read(case.join("recovered").join(LOG)).unwrap();
    let found = fs::read(directory.join("out").join(LOG)).unwrap();
    assert!(found.starts_with(&recovered) && found.len() > recovered.len());
    assert_eq!(report.dropped.len(), 1);
    assert_eq!(files(&directory.join("out"), &["log"]).len(), 1);
}

/// Offsets of the first and last record of each batch.
fn offsets(bytes: &[u8]) -> Vec<(i64, i64)> {
    let offsets = |batch: kbat::Batch<'_>| (batch.base_offset().unwrap(), batch.last_offset());
    kbat::batches(bytes).map(|batch| offsets(batch.unwrap())).collect()
}

#[test]
fn salvage_holes_have_the_offsets_of_the_batches_between_them() {
    let bytes = sample("crash-index");
    let (at, of) = (positions(&bytes), offsets(&bytes));
    for first in 0..of.len() - 3 {
        let mut damaged = bytes.clone();
        // one or two intact batches are between them, and the first is after a hole
        let lost = [first, first + 2];
        for number in lost {
            damaged[at[number + 1] - 1] ^= 1;
        }
        let (_, report) = salvaged("between", &damaged);
        let expected: Vec<Hole> = lost
            .iter()
            .map(|&number| (at[number], at[number + 1] - at[number], "crc", Some(of[number].0), Some(of[number].1)))
            .collect();
        assert_eq!(holes(&report), expected);
    }
}

#[test]
fn salvage_holes_after_a_gap_of_compaction_have_the_offsets_of_the_damaged_batch() {
    let case = data_dir().join("log-dir").join("compacted-0");
    let mut count = 0;
    for name in partition_files(&case).iter().filter(|name| name.ends_with(".log")) {
        let bytes = fs::read(case.join(name)).unwrap();
        let (at, of) = (positions(&bytes), offsets(&bytes));
        for (number, (first, last)) in of.into_iter().enumerate() {
            let directory = TempDir::new("salvage-compacted");
            let (source, out) = (directory.join("compacted-0"), directory.join("out"));
            copy_partition(&case, &source);
            let mut damaged = bytes.clone();
            damaged[at[number + 1] - 1] ^= 1;
            fs::write(source.join(name), damaged).unwrap();
            let report = salvage(&source, &out, &SalvageOptions::default(), &mut Progress::none()).unwrap();
            let [hole] = &report.dropped[..] else { panic!("{name} {number}: {report}") };
            assert!(hole.first_offset.is_some_and(|lost| lost <= first), "{name} {number}: {report}");
            assert!(hole.last_offset.is_none_or(|lost| lost >= last), "{name} {number}: {report}");
            count += 1;
        }
    }
    assert_eq!(count, 25);
}

#[test]
fn salvage_keeps_every_offset_of_segments_with_wrong_names() {
    let case = data_dir().join("log-dir").join("segments-default-interval-0");
    let log = |base: i64| format!("{base:020}.log");
    let all = |place: &Path| {
        let mut found = Vec::new();
        for name in partition_files(place).iter().filter(|name| name.ends_with(".log")) {
            found.extend(offsets(&fs::read(place.join(name)).unwrap()));
        }
        found
    };
    let expected = all(&case);
    for (from, to, is_moved) in [
        (310, 9000, true),
        (310, 9000, false),
        (0, 9000, false),
        (868, 9000, false),
        (147, 9000, true),
        (1018, 9000, true),
        (0, 500, true),
        (0, 500, false),
        (1018, 5, true),
        (1018, 5, false),
        (421, 148, true),
    ] {
        let directory = TempDir::new("salvage-names");
        let (source, out) = (directory.join("orders-0"), directory.join("out"));
        copy_partition(&case, &source);
        fs::copy(source.join(log(from)), source.join(log(to))).unwrap();
        if is_moved {
            fs::remove_file(source.join(log(from))).unwrap();
        }
        let report = salvage(&source, &out, &SalvageOptions::default(), &mut Progress::none()).unwrap();
        assert_eq!(all(&out), expected, "{from} {to} {is_moved}: {report}");
        assert_eq!(report.dropped.is_empty(), is_moved, "{from} {to} {is_moved}: {report}");
    }
}

#[test]
fn salvage_and_recover_refuse_a_segment_that_is_only_there_compressed() {
    let case = data_dir().join("log-dir").join("segments-default-interval-0");
    let directory = TempDir::new("salvage-compressed");
    let (source, out) = (directory.join("orders-0"), directory.join("out"));
    copy_partition(&case, &source);
    let log = source.join("00000000000000000310.log");
    fs::rename(&log, log.with_extension("log.gz")).unwrap();
    let refused = |error: kbat::Error| {
        assert!(error.to_string().contains("this segment is compressed"), "{error}");
        assert!(error.to_string().contains("00000000000000000310.log.gz"), "{error}");
    };
    refused(salvage(&source, &out, &SalvageOptions::default(), &mut Progress::none()).unwrap_err());
    let options = kbat::repair::RecoverOptions { dry_run: true, ..Default::default() };
    refused(kbat::repair::recover(&source, &options, &mut Progress::none()).unwrap_err());
    let report = kbat::repair::verify(&source, &kbat::Limits::default(), &mut Progress::none()).unwrap();
    assert!(report.findings.iter().any(|finding| finding.kind == "compressed_segment"));
    fs::rename(log.with_extension("log.gz"), log.with_extension("log.swap")).unwrap();
    let report = kbat::repair::verify(&source, &kbat::Limits::default(), &mut Progress::none()).unwrap();
    let found: Vec<_> = report.findings.iter().filter(|finding| finding.kind == "interrupted_compaction").collect();
    assert_eq!(found.iter().map(|finding| finding.path.clone()).collect::<Vec<_>>(), [log.with_extension("log.swap")]);
}

#[test]
fn salvage_loses_one_batch_if_the_offset_of_the_first_batch_of_a_segment_is_wrong() {
    let case = data_dir().join("log-dir").join("segments-default-interval-0");
    let logs: Vec<String> = partition_files(&case).into_iter().filter(|name| name.ends_with(".log")).collect();
    let all = |place: &Path| -> Vec<(i64, i64)> {
        logs.iter().flat_map(|name| fs::read(place.join(name)).map_or(Vec::new(), |bytes| offsets(&bytes))).collect()
    };
    let expected = all(&case);
    for name in [&logs[0], &logs[2], &logs[7]] {
        for bit in 0..14_usize {
            let directory = TempDir::new("salvage-first");
            let (source, out) = (directory.join("orders-0"), directory.join("out"));
            copy_partition(&case, &source);
            let mut bytes = fs::read(source.join(name)).unwrap();
            let first = offsets(&bytes)[0];
            bytes[7 - bit / 8] ^= 1 << (bit % 8);
            fs::write(source.join(name), bytes).unwrap();
            salvage(&source, &out, &SalvageOptions::default(), &mut Progress::none()).unwrap();
            let kept: Vec<_> = all(&out).into_iter().filter(|batch| expected.contains(batch)).collect();
            let others: Vec<_> = expected.iter().copied().filter(|batch| *batch != first).collect();
            assert_eq!(kept, others, "{name} {bit}");
        }
    }
}

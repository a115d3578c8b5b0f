//! Control records: edge cases 64 and 65, and Kafka's `ControlRecordTypeTest` and `EndTransactionMarkerTest`.

use kbat::{BatchBuilder, ControlRecord, ErrorKind, Limits, Scratch};

use crate::data::{first, records};
use crate::raw::{CONTROL, V2, body, with_len};

/// The content of the one record of a control batch.
fn parse(key: Option<&[u8]>, value: Option<&[u8]>) -> kbat::Result<ControlRecord> {
    let bytes = V2 { attributes: CONTROL, ..V2::of(&[with_len(&body(0, 0, key, value))]) }.bytes();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    ControlRecord::parse(&first(&bytes).records(&mut scratch, &limits)?.next().unwrap()?)
}

fn key(version: i16, type_id: i16) -> Vec<u8> {
    [version.to_be_bytes(), type_id.to_be_bytes()].concat()
}

/// Edge case 64.
#[test]
fn control_markers_of_any_version_are_read() {
    let value = [0, 0, 0, 0, 1, 91];
    assert_eq!(parse(Some(&key(0, 0)), Some(&value)).unwrap(), ControlRecord::Abort { coordinator_epoch: 347 });
    assert_eq!(parse(Some(&key(0, 1)), Some(&value)).unwrap(), ControlRecord::Commit { coordinator_epoch: 347 });
    let longer = [&[0, 7][..], &value[2..], &[1; 16]].concat();
    let longer_key = [key(5, 0), vec![9; 4]].concat();
    assert_eq!(parse(Some(&longer_key), Some(&longer)).unwrap(), ControlRecord::Abort { coordinator_epoch: 347 });
    for version in [-1, i16::MIN] {
        assert!(parse(Some(&key(version, 0)), Some(&value)).is_err());
        assert!(parse(Some(&key(0, 0)), Some(&[&version.to_be_bytes()[..], &value[2..]].concat())).is_err());
    }
}

/// Edge case 64.
#[test]
fn control_keys_and_values_too_short_are_refused() {
    for len in 0..4 {
        assert!(parse(Some(&key(0, 1)[..len]), Some(&[0; 6])).is_err(), "key of {len}");
    }
    for len in 0..6 {
        let error = parse(Some(&key(0, 1)), Some(&[0; 6][..len])).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Truncated), "{error}");
        assert_eq!((error.position().base_offset, error.position().record), (Some(0), Some(0)));
    }
    assert!(parse(None, Some(&[0; 6])).is_err());
    assert!(parse(Some(&key(0, 1)), None).is_err());
}

/// Edge case 64. `ControlRecordType.parse` takes any number.
#[test]
fn control_types_that_are_unknown_are_named_by_number() {
    for type_id in [7, 99, 337, -1, i16::MAX] {
        let record = parse(Some(&key(0, type_id)), Some(b"opaque value of 22 b.")).unwrap();
        assert_eq!(record, ControlRecord::Unknown { type_id });
        assert_eq!((record.type_id(), record.to_string()), (type_id, format!("UNKNOWN({type_id})")));
    }
}

/// Edge case 65. Kafka's readers take them; ruby-kafka broke on control without transactional.
#[test]
fn control_batches_of_no_and_of_several_records_are_read() {
    let empty = V2 { attributes: CONTROL, record_count: 0, ..V2::default() }.bytes();
    assert!(first(&empty).is_control() && records(&first(&empty)).unwrap().is_empty());

    let mut builder = BatchBuilder::new().control(true);
    let all = [
        ControlRecord::SnapshotHeader { last_contained_log_timestamp: 5 },
        ControlRecord::KRaftVersion { kraft_version: 1 },
        ControlRecord::SnapshotFooter,
    ];
    for record in &all {
        builder.append_control(1, record).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    let batch = first(&bytes);
    assert!(batch.is_control() && !batch.is_transactional());
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let found =
        batch.records(&mut scratch, &limits).unwrap().map(|record| ControlRecord::parse(&record.unwrap()).unwrap());
    assert_eq!(found.collect::<Vec<_>>(), all);
}

/// After `MemoryRecordsBuilderTest.testWriteTransactionalNotAllowed…` and its siblings.
#[test]
fn control_records_where_they_do_not_belong_are_refused() {
    let commit = ControlRecord::Commit { coordinator_epoch: 1 };
    let refuse = |builder: BatchBuilder, record: &ControlRecord| {
        let mut builder = builder;
        assert!(builder.append_control(0, record).is_err());
        assert_eq!(builder.size(), 0);
    };
    refuse(BatchBuilder::new(), &commit);
    refuse(BatchBuilder::new().transactional(true), &commit);
    refuse(BatchBuilder::new().control(true), &commit);
    refuse(BatchBuilder::new().control(true), &ControlRecord::Unknown { type_id: 9 });
    let leader_change = ControlRecord::LeaderChange { leader_id: 1, voters: vec![], granting_voters: vec![] };
    refuse(BatchBuilder::new().control(true), &leader_change);
    refuse(BatchBuilder::new().magic(1).control(true), &ControlRecord::SnapshotFooter);
    let leader = ControlRecord::LeaderChange { leader_id: 1, voters: Vec::new(), granting_voters: Vec::new() };
    refuse(BatchBuilder::new().control(true), &leader);
    let mut builder = BatchBuilder::new().control(true);
    for key in [None, Some(&b"key"[..]), Some(&[0, 0, 0, 7]), Some(&[0xff, 0xff, 0, 1])] {
        assert!(builder.append(0, key, None).is_err(), "{key:?} is the key of no control record");
    }
    let mut epoch = BatchBuilder::new().control(true).partition_leader_epoch(0);
    assert!(epoch.append_control(0, &leader_change).is_ok());
    assert!(epoch.append(0, None, None).is_err() && epoch.append(0, Some(&[0, 0, 0, 7]), None).is_err());
    for marker in [ControlRecord::SnapshotFooter, ControlRecord::Unknown { type_id: 1 }] {
        assert!(kbat::format::end_transaction_marker(0, 0, 0, 1, 1, &marker).is_err());
    }
    assert!(kbat::format::end_transaction_marker(0, 0, 0, -1, 1, &commit).is_err());
    assert!(kbat::format::end_transaction_marker(0, 0, 0, 1, -1, &commit).is_err());
}

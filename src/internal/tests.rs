//! Messages that Kafka 4.3.1 wrote, with the JSON of its own decoder; damaged and unknown ones.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap()).collect();
    digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

const OFFSET_KEY: &str = "00010009636c61737369632d300009636f6465632d6c7a3400000000";
const OFFSET_VALUE: &str = "000400000000000000140000000001000001a1fd753bbb010010c1cd800ddb1a4e8e85ec78376f75f9eb";
const MEMBER_VALUE: &str = "0000000014636f6e73756d65722d6d6f6465726e2d302d340b2f3132372e302e302e31030b636f6465632d6e6f6e65\
                            0d636f6465632d736e6170707901000493e00001000100";
const PARTITION_CHANGE: &str =
    "01050200000000f50f162b57cb473590152307f037ab14040001010104ffffffff0605020000000107050200000001";

#[test]
fn offset_commit_is_that_of_kafka() {
    let (key_bytes, value_bytes) = (bytes(OFFSET_KEY), bytes(OFFSET_VALUE));
    let key = key(Family::Group, &key_bytes).unwrap();
    assert_eq!((key.name(), key.type_id(), key.version()), ("OffsetCommitKey", 1, 0));
    assert_eq!(key.to_json(), r#"{"group":"classic-0","topic":"codec-lz4","partition":0}"#);
    let value = value(Family::Group, 1, &value_bytes).unwrap();
    assert_eq!((value.name(), value.version()), ("OffsetCommitValue", 4));
    let expected = r#"{"offset":20,"leaderEpoch":0,"metadata":"","commitTimestamp":1795253681083,"topicId":"wc2ADdsaTo6F7Hg3b3X56w"}"#;
    assert_eq!(value.to_json(), expected);
    assert_eq!(value.value().get("offset").and_then(Value::as_int), Some(20));
    assert_eq!(value.value().get("expireTimestamp"), None);
}

#[test]
fn tagged_null_that_is_not_the_default_is_written() {
    let value_bytes = bytes(MEMBER_VALUE);
    let json = value(Family::Group, 5, &value_bytes).unwrap().to_json();
    assert!(json.starts_with(r#"{"instanceId":null,"rackId":null,"clientId":"consumer-modern-0-4""#), "{json}");
    assert!(json.ends_with(r#""serverAssignor":null,"classicMemberMetadata":null}"#), "{json}");
}

#[test]
fn framed_record_is_that_of_kafka() {
    let record_bytes = bytes(PARTITION_CHANGE);
    let record = framed(Family::Metadata, &record_bytes).unwrap();
    let expected = r#"{"partitionId":0,"topicId":"9Q8WK1fLRzWQFSMH8DerFA","isr":[],"leader":-1,"eligibleLeaderReplicas":[1],"lastKnownElr":[1]}"#;
    assert_eq!((record.name(), record.version(), record.to_json().as_str()), ("PartitionChangeRecord", 2, expected));
}

#[test]
fn tag_of_a_later_version_is_refused() {
    let mut record = bytes(PARTITION_CHANGE);
    record[2] = 1;
    let fault = framed(Family::Metadata, &record).unwrap_err();
    assert_eq!(fault.to_string(), "record type 5, version 1: Tag 6 is not valid for version 1 (byte 35)");
}

#[test]
fn unknown_types_and_versions_are_named() {
    assert_eq!(key(Family::Group, &[0, 99]), Err(MessageError::UnknownType(99)));
    assert_eq!(value(Family::Group, 1, &[0, 9]), Err(MessageError::UnknownVersion { type_id: 1, version: 9 }));
    assert_eq!(framed(Family::Metadata, &[1, 127, 0]), Err(MessageError::UnknownType(127)));
    let mut record = bytes(PARTITION_CHANGE);
    record[2] = 9;
    assert_eq!(framed_strict(Family::Metadata, &record), Err(MessageError::UnknownVersion { type_id: 5, version: 9 }));
    assert!(framed(Family::Metadata, &record).is_ok(), "a version without further fields is read, as in Kafka");
}

#[test]
fn every_truncation_is_a_fault_with_its_position() {
    for (type_id, hex) in [(1, OFFSET_VALUE), (5, MEMBER_VALUE)] {
        let whole = bytes(hex);
        for len in 0..whole.len() {
            let error = value(Family::Group, type_id, &whole[..len]).unwrap_err();
            assert!(error.position() <= len, "{error}");
        }
    }
    let whole = bytes(PARTITION_CHANGE);
    for len in 0..whole.len() {
        assert!(framed(Family::Metadata, &whole[..len]).is_err());
    }
}

#[test]
fn huge_lengths_allocate_nothing() {
    // an array of 2³¹ − 2 transaction partitions
    let mut value_bytes = vec![0, 1];
    value_bytes.extend([0; 8 + 2 + 4 + 1]);
    value_bytes.extend([0xff, 0xff, 0xff, 0xff, 0x07]);
    let error = value(Family::Transaction, 0, &value_bytes).unwrap_err();
    assert!(error.to_string().contains("Tried to allocate a collection of size 2147483646"), "{error}");
}

#[test]
fn arbitrary_bytes_never_panic() {
    let mut state = 7_u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = u8::try_from(state >> 56).unwrap();
        if random < 128 { random & 7 } else { random }
    };
    for round in 0..20_000_u32 {
        let mut data: Vec<u8> = (0..round % 60).map(|_| byte()).collect();
        for family in [Family::Group, Family::Transaction, Family::Share] {
            drop(key(family, &data));
            for type_id in 0..24 {
                if let Ok(message) = value(family, type_id, &data) {
                    assert!(message.to_json().starts_with('{'));
                }
            }
        }
        data.insert(0, 1);
        for family in [Family::Metadata, Family::Remote] {
            if let Ok(message) = framed(family, &data) {
                assert!(message.to_json().starts_with('{'));
            }
        }
    }
}

#[test]
fn record_shows_as_much_as_can_be_decoded() {
    let (key_bytes, value_bytes) = (bytes(OFFSET_KEY), bytes(OFFSET_VALUE));
    let whole = record(Family::Group, Some(&key_bytes), Some(&value_bytes));
    assert_eq!((whole.name.as_deref(), whole.type_id, whole.version), (Some("OffsetCommit"), Some(1), Some(4)));
    assert!(whole.key.is_some() && whole.value.is_some() && whole.reason.is_none());

    let tombstone = record(Family::Group, Some(&key_bytes), None);
    assert_eq!((tombstone.version, &tombstone.value, &tombstone.reason), (None, &None, &None));

    let newer = record(Family::Group, Some(&key_bytes), Some(&[0, 9]));
    assert_eq!((newer.version, newer.reason.as_deref()), (Some(9), Some("unknown version 9 of record type 1")));
    assert!(newer.key.is_some() && newer.value.is_none());

    let cut = record(Family::Group, Some(&key_bytes[..5]), Some(&value_bytes));
    assert_eq!((cut.name.as_deref(), cut.type_id), (Some("OffsetCommit"), Some(1)));
    assert!(cut.reason.unwrap().starts_with("key: "));

    let cut = record(Family::Group, Some(&key_bytes), Some(&value_bytes[..5]));
    assert_eq!((cut.version, cut.value), (Some(4), None));
    assert!(cut.reason.unwrap().starts_with("value: "));

    assert_eq!(record(Family::Group, None, Some(&value_bytes)).reason.as_deref(), Some("the key is null"));
}

#[test]
fn framed_record_of_a_newer_version_is_not_guessed() {
    let mut change = bytes(PARTITION_CHANGE);
    let known = record(Family::Metadata, None, Some(&change));
    assert_eq!((known.name.as_deref(), known.version), (Some("PartitionChangeRecord"), Some(2)));
    assert!(known.value.is_some() && known.reason.is_none());
    change[2] = 9;
    let newer = record(Family::Metadata, None, Some(&change));
    assert_eq!(
        (newer.name.as_deref(), newer.type_id, newer.version),
        (Some("PartitionChangeRecord"), Some(5), Some(9))
    );
    assert_eq!((newer.value, newer.reason.as_deref()), (None, Some("unknown version 9 of record type 5")));
    let unknown = record(Family::Metadata, None, Some(&[1, 127, 0]));
    assert_eq!((unknown.name, unknown.type_id), (None, Some(127)));
    assert_eq!(record(Family::Remote, None, None).reason.as_deref(), Some("the value is null"));
}

#[test]
fn empty_structs_take_no_more_memory_than_is_allowed() {
    // the value of a streams group member: no instance, rack or endpoint, empty texts, and many empty client tags
    let message = |count: u32| {
        let mut bytes = vec![0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0xff];
        let mut rest = count + 1;
        while rest > 127 {
            bytes.push(u8::try_from(rest & 127 | 128).unwrap());
            rest >>= 7;
        }
        bytes.push(u8::try_from(rest).unwrap());
        bytes.extend([1, 1, 0].repeat(count.try_into().unwrap()));
        bytes.push(0);
        bytes
    };
    assert!(value(Family::Group, 19, &message(300_000)).is_ok());
    let error = value(Family::Group, 19, &message(3_000_000)).unwrap_err().to_string();
    assert!(error.contains("too many fields for 9000021 bytes"), "{error}");
}

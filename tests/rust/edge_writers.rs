//! Building batches: edge cases 54 and 69 to 76, and Kafka's `MemoryRecordsBuilderTest`.

use kbat::{BatchBuilder, Compression, ErrorKind};

use crate::data::{first, records};

fn finish(builder: BatchBuilder) -> Vec<u8> {
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

/// A failed append must not change the builder.
fn refused(builder: &mut BatchBuilder, append: impl FnOnce(&mut BatchBuilder) -> kbat::Result<()>) -> String {
    let before = (builder.record_count(), finish(builder.clone()));
    let error = append(builder).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument(_)), "{error}");
    assert_eq!((builder.record_count(), finish(builder.clone())), before);
    error.to_string()
}

/// After `testWriteEmptyRecordSet`.
#[test]
fn builder_without_records_writes_nothing() {
    for magic in 0..=2 {
        for compression in [Compression::None, Compression::Gzip, Compression::Lz4] {
            let mut out = vec![1, 2, 3];
            let builder = BatchBuilder::new().magic(magic).compression(compression);
            assert_eq!((builder.size(), builder.estimated_size()), (0, 0));
            builder.finish_into(&mut out).unwrap();
            assert_eq!(out, [1, 2, 3]);
        }
    }
}

/// Edge case 74. After `testWriteTransactionalWithInvalidPID`, `testWriteIdempotentWithInvalidEpoch`, `…BaseSequence`.
#[test]
fn builder_with_half_a_producer_is_refused() {
    let with_record = |builder: BatchBuilder| {
        let mut builder = builder;
        builder.append(0, None, None).unwrap();
        let mut out = vec![7];
        let error = builder.finish_into(&mut out).unwrap_err();
        assert_eq!(out, [7], "nothing is written");
        error.to_string()
    };
    assert!(with_record(BatchBuilder::new().transactional(true)).contains("producer id"));
    assert!(with_record(BatchBuilder::new().producer(1, -1, 0)).contains("epoch"));
    assert!(with_record(BatchBuilder::new().producer(1, 0, -1)).contains("sequence"));
    assert!(with_record(BatchBuilder::new().magic(1).producer(1, 0, 0)).contains("magic 1"));
}

/// After `testWriteTransactionalNotAllowedMagicV0` and its siblings.
#[test]
fn builder_settings_that_a_magic_lacks_are_refused() {
    for magic in [0, 1] {
        for builder in [
            BatchBuilder::new().magic(magic).transactional(true),
            BatchBuilder::new().magic(magic).control(true),
            BatchBuilder::new().magic(magic).delete_horizon_ms(1),
            BatchBuilder::new().magic(magic).compression(Compression::Zstd),
        ] {
            assert!(builder.validate().unwrap_err().to_string().contains(&format!("magic {magic}")));
        }
        let mut builder = BatchBuilder::new().magic(magic);
        refused(&mut builder, |builder| builder.append_with_headers(0, None, None, &[(b"k", None)]));
    }
    assert!(BatchBuilder::new().magic(3).validate().is_err());
    assert!(BatchBuilder::new().delete_horizon_ms(-1).validate().is_err());
}

/// Format test 89. Levels are those of KIP-390.
#[test]
fn builder_levels_outside_of_kafkas_are_refused() {
    let gzip = BatchBuilder::new().compression(Compression::Gzip);
    assert!(gzip.level(-1).validate().is_err(), "Kafka's word for the default; here, no level is");
    for compression in Compression::ALL {
        let Some((lowest, highest)) = compression.levels() else {
            assert!(BatchBuilder::new().compression(compression).level(1).validate().is_err());
            continue;
        };
        for (level, good) in [(lowest, true), (highest, true), (lowest - 1, false), (highest + 1, false)] {
            assert_eq!(BatchBuilder::new().compression(compression).level(level).validate().is_ok(), good);
        }
    }
}

/// Edge case 73. After `testAppendWithOffset…` of `MemoryRecordsBuilder`.
#[test]
fn builder_offsets_that_do_not_rise_or_reach_too_far_are_refused() {
    let mut builder = BatchBuilder::new().base_offset(100);
    refused(&mut builder, |builder| builder.append_at(99, 0, None, None, &[]));
    builder.append_at(105, 0, None, Some(b"a"), &[]).unwrap();
    for offset in [105, 104, 0, -1, i64::MIN] {
        assert!(refused(&mut builder, |builder| builder.append_at(offset, 0, None, None, &[])).contains("must rise"));
    }
    let furthest = 100 + i64::from(i32::MAX);
    refused(&mut builder, |builder| builder.append_at(furthest + 1, 0, None, None, &[]));
    builder.append_at(furthest, 0, None, Some(b"b"), &[]).unwrap();
    refused(&mut builder, |builder| builder.append(0, None, None));
    let bytes = finish(builder);
    assert_eq!((first(&bytes).base_offset(), first(&bytes).last_offset()), (Some(100), furthest));
    let offsets: Vec<_> = records(&first(&bytes)).unwrap().iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [105, furthest]);
}

/// Edge case 71. A failed append adds no bytes.
#[test]
fn builder_timestamps_that_are_negative_are_refused() {
    for magic in 0..=2 {
        let mut builder = BatchBuilder::new().magic(magic);
        builder.append(5, Some(b"k"), Some(b"v")).unwrap();
        for timestamp in [-2, i64::MIN] {
            refused(&mut builder, |builder| builder.append(timestamp, Some(b"k"), Some(b"v")));
        }
        builder.append(-1, None, None).unwrap();
        builder.append(i64::MAX, None, None).unwrap();
        assert_eq!(crate::data::all_records(&finish(builder)).unwrap().len(), 3);
    }
}

/// After `buildUsingLogAppendTime` and `buildUsingCreateTime`.
#[test]
fn builder_max_timestamp_is_the_largest_or_the_append_time() {
    for magic in [1, 2] {
        for compression in [Compression::None, Compression::Gzip] {
            let build = |builder: BatchBuilder| {
                let mut builder = builder.magic(magic).compression(compression);
                for timestamp in [0, 2, 1] {
                    builder.append(timestamp, Some(b"a"), Some(b"1")).unwrap();
                }
                finish(builder)
            };
            let create = build(BatchBuilder::new());
            let largest = kbat::batches(&create).map(|batch| batch.unwrap().max_timestamp()).max();
            assert_eq!(largest, Some(2));
            let log_append = build(BatchBuilder::new().log_append_time(50));
            assert!(kbat::batches(&log_append).all(|batch| batch.unwrap().max_timestamp() == 50));
            assert!(crate::data::all_records(&log_append).unwrap().iter().all(|record| record.timestamp == 50));
        }
    }
}

/// Edge case 19. After `testRecordTimestampsWithDeleteHorizon`.
#[test]
fn builder_delete_horizon_keeps_timestamps() {
    let mut builder = BatchBuilder::new().delete_horizon_ms(100);
    for timestamp in [50, 100, 150] {
        builder.append(timestamp, Some(b"k"), None).unwrap();
    }
    let bytes = finish(builder);
    let batch = first(&bytes);
    assert_eq!((batch.delete_horizon_ms(), batch.base_timestamp(), batch.max_timestamp()), (Some(100), 100, 150));
    assert_eq!(records(&batch).unwrap().iter().map(|record| record.timestamp).collect::<Vec<_>>(), [50, 100, 150]);
}

/// A batch may end after its last record, as after compaction, within an `i32` of its base offset.
#[test]
fn builder_last_offset_is_bounded() {
    let build = |last_offset| {
        let mut builder = BatchBuilder::new().base_offset(10).last_offset(last_offset);
        builder.append(0, None, None).unwrap();
        let mut out = vec![9];
        let result = builder.finish_into(&mut out);
        (result, out)
    };
    let (result, out) = build(20);
    result.unwrap();
    assert_eq!(first(&out[1..]).last_offset(), 20);
    for last_offset in [i64::MAX, 11 + i64::from(i32::MAX)] {
        let (result, out) = build(last_offset);
        assert!(result.is_err());
        assert_eq!(out, [9]);
    }
}

/// Edge case 54. As in Java, records are compressed even if that makes them longer.
#[test]
fn builder_compresses_what_grows_by_it() {
    for compression in Compression::ALL {
        let mut builder = BatchBuilder::new().compression(compression);
        builder.append(0, None, Some(b"x")).unwrap();
        let (size, most) = (builder.size(), builder.estimated_size());
        let bytes = finish(builder);
        assert_eq!(first(&bytes).compression().unwrap(), compression);
        assert!(bytes.len() <= most && (compression == Compression::None || bytes.len() > size));
        assert_eq!(records(&first(&bytes)).unwrap()[0].value.as_deref(), Some(&b"x"[..]));
    }
}

/// Edge case 76, at the sizes where a codec's overhead changes, with bytes that do not shrink.
#[test]
fn builder_estimate_is_never_too_small() {
    let noise: Vec<u8> =
        (0..300_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8 ^ (i >> 3) as u8).collect();
    for compression in Compression::ALL {
        for magic in 0..=2 {
            if compression == Compression::Zstd && magic < 2 {
                continue;
            }
            for len in [0, 1, 100, 32_000, 32_768, 65_000, 65_536, 131_072, 131_100, 300_000] {
                let mut builder = BatchBuilder::new().magic(magic).compression(compression);
                builder.append(0, None, Some(&noise[..len])).unwrap();
                let most = builder.estimated_size();
                let len = finish(builder).len();
                assert!(len <= most, "{compression} magic {magic}: {len} bytes, estimated {most}");
            }
        }
    }
}

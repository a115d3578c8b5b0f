use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::compression::compress;

type Reads = Arc<Mutex<Vec<Range<u64>>>>;

/// An object that records its reads.
struct RecordedObject {
    bytes: Vec<u8>,
    reads: Reads,
}

impl ReadAt for RecordedObject {
    fn byte_len(&self) -> Result<u64> {
        Ok(u64_of(self.bytes.len()))
    }

    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        let end = position.saturating_add(u64_of(out.len()));
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).push(position..end);
        self.bytes.as_slice().read_bytes_at(out, position)
    }
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    compress(Compression::Zstd, None, 2, bytes, &mut frame).unwrap();
    frame
}

/// The manifest of a compressed segment.
fn manifest(chunk_len: u64, len: u64, sizes: &[u32]) -> Vec<u8> {
    let mut encoded = u32::try_from(sizes.len()).unwrap().to_be_bytes().to_vec();
    let (last, others) = sizes.split_last().unwrap();
    if !others.is_empty() {
        encoded.extend([0, 0, 0, 0, 4]);
    }
    encoded.extend(others.iter().chain([last]).flat_map(|size| size.to_be_bytes()));
    let empty = json!({"position": 0, "size": 0});
    let manifest = json!({
        "version": "1",
        "chunkIndex": {"type": "variable", "originalChunkSize": chunk_len, "originalFileSize": len,
                       "transformedChunks": STANDARD.encode(frame(&encoded))},
        "segmentIndexes": {"offset": empty, "timestamp": empty, "producerSnapshot": empty, "leaderEpoch": empty},
        "compression": true
    });
    manifest.to_string().into_bytes()
}

fn open(bytes: Vec<u8>, manifest: &[u8]) -> Result<(Segment, Reads)> {
    let reads = Reads::default();
    let object = RecordedObject { bytes, reads: Arc::clone(&reads) };
    let keys = EncryptionKeys::new();
    let segment = Segment::open(Box::new(object), manifest, &keys, &Limits::default(), "t-0/segment.log")?;
    Ok((segment, reads))
}

fn original() -> Vec<u8> {
    (0..1050_u32).flat_map(u32::to_be_bytes).take(1050).collect()
}

/// A segment of 11 chunks, the last of which is shorter.
fn compressed() -> (Vec<u8>, Vec<u32>) {
    let frames: Vec<Vec<u8>> = original().chunks(100).map(frame).collect();
    let sizes = frames.iter().map(|frame| u32::try_from(frame.len()).unwrap()).collect();
    (frames.concat(), sizes)
}

fn read(segment: &Segment, position: u64, len: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; len];
    let count = segment.read_at(&mut out, position)?;
    out.truncate(count);
    Ok(out)
}

#[test]
fn read_at_every_range_equals_the_original() {
    let (object, sizes) = compressed();
    let (segment, _) = open(object, &manifest(100, 1050, &sizes)).unwrap();
    let original = original();
    for start in (0..1060).step_by(7) {
        for len in [0, 1, 99, 100, 101, 350, 2000] {
            let expected: Vec<u8> = original.iter().skip(start).take(len).copied().collect();
            assert_eq!(read(&segment, u64_of(start), len).unwrap(), expected, "{len} bytes at {start}");
        }
    }
    assert!(read(&segment, u64::MAX, 10).unwrap().is_empty());
    assert_eq!(segment.byte_len().unwrap(), 1050);
}

#[test]
fn read_at_fetches_only_the_needed_chunks_and_each_once() {
    let (object, sizes) = compressed();
    let (segment, reads) = open(object, &manifest(100, 1050, &sizes)).unwrap();
    let chunk = |number| segment.manifest().chunks.chunk(number).unwrap().transformed;
    let taken = || std::mem::take(&mut *reads.lock().unwrap());
    read(&segment, 250, 1).unwrap();
    assert_eq!(taken(), [chunk(2)]);
    read(&segment, 200, 100).unwrap();
    assert!(taken().is_empty());
    read(&segment, 150, 300).unwrap();
    assert_eq!(taken(), [chunk(1), chunk(3).start..chunk(4).end]);
    assert_eq!(segment.object_range(150..450), chunk(1).start..chunk(4).end);
    assert_eq!(segment.object_range(1049..5000), chunk(10));
    assert_eq!(segment.object_range(1050..5000), 0..0);
    assert_eq!(segment.object_range(5..5), 0..0);
}

#[test]
fn truncated_object_is_readable_up_to_the_chunk() {
    let (mut object, sizes) = compressed();
    object.pop();
    let (segment, _) = open(object, &manifest(100, 1050, &sizes)).unwrap();
    assert_eq!(read(&segment, 0, 1000).unwrap(), original()[..1000]);
    let error = read(&segment, 1000, 1).unwrap_err();
    assert!(error.to_string().contains("chunk 10 is truncated"), "{error}");
    assert_eq!(error.position().byte, Some(1000));
    assert_eq!(error.path(), Some(Path::new("t-0/segment.log")));
}

#[test]
fn bytes_after_the_last_chunk_are_damage_after_the_original_bytes() {
    let (mut object, sizes) = compressed();
    object.extend([1, 2, 3]);
    let (segment, _) = open(object, &manifest(100, 1050, &sizes)).unwrap();
    assert_eq!((segment.original_len(), segment.byte_len().unwrap()), (1050, 1053));
    assert_eq!(read(&segment, 0, 1050).unwrap(), original());
    assert!(read(&segment, 1053, 10).unwrap().is_empty());
    for (position, len) in [(0, 1051), (1050, 1), (1052, 10)] {
        let error = read(&segment, position, len).unwrap_err();
        assert!(error.to_string().contains("bytes, but its manifest describes"), "{error}");
        assert_eq!(error.position().byte, Some(1050));
        assert_eq!(error.path(), Some(Path::new("t-0/segment.log")));
    }
    for position in [0, 1049, 1050, 1052, 1053, 1054] {
        let (mut out, mut damaged) = (vec![7; 1060], DamagedChunks::default());
        let count = segment.read_over_damage(&mut out, position, &mut damaged).unwrap();
        let mut expected = original();
        expected.extend([DAMAGED_BYTE; 3]);
        assert_eq!(out[..count], *expected.get(usize_from_u64(position)..).unwrap_or_default());
        assert!(
            segment.damage_in(&(1049..1051), &damaged).is_some() && segment.damage_in(&(0..1050), &damaged).is_none()
        );
    }
}

#[test]
fn chunk_of_another_size_is_refused_and_named() {
    for (content, expected) in [(vec![0; 99], "expected 100"), (vec![0; 101], "more than 100")] {
        let mut frames: Vec<Vec<u8>> = original().chunks(100).map(frame).collect();
        frames[3] = frame(&content);
        let sizes: Vec<u32> = frames.iter().map(|frame| u32::try_from(frame.len()).unwrap()).collect();
        let (segment, _) = open(frames.concat(), &manifest(100, 1050, &sizes)).unwrap();
        read(&segment, 400, 600).unwrap();
        let error = read(&segment, 250, 100).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Decompression { .. }));
        assert!(error.to_string().contains("chunk 3 has") && error.to_string().contains(expected), "{error}");
        assert_eq!(error.position().byte, Some(300));
    }
}

/// 64 MiB of zeros in a chunk of 100 bytes, and in one whose manifest admits to it.
#[test]
fn bomb_is_refused_within_the_limits() {
    let bomb = frame(&vec![0; 64 << 20]);
    let size = u32::try_from(bomb.len()).unwrap();
    let (segment, _) = open(bomb.clone(), &manifest(100, 100, &[size])).unwrap();
    let error = read(&segment, 0, 100).unwrap_err();
    assert!(error.to_string().contains("chunk 0 has more than 100 bytes"), "{error}");
    let len = 64 << 20;
    let limits = Limits { ratio_free_len: 1 << 20, ..Limits::default() };
    let object = RecordedObject { bytes: bomb, reads: Reads::default() };
    let keys = EncryptionKeys::new();
    let segment = Segment::open(Box::new(object), &manifest(len, len, &[size]), &keys, &limits, "s.log").unwrap();
    let error = read(&segment, 0, 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "ratio", .. }), "{error}");
    assert!(error.to_string().contains("chunk 0"), "{error}");
}

#[test]
fn sizes_of_two_gigabytes_cost_no_memory() {
    let most = 0x7fff_ffff_u32;
    let (segment, _) = open(vec![0; 10], &manifest(u64::from(most), u64::from(most), &[most])).unwrap();
    let error = read(&segment, 5, 1).unwrap_err();
    assert!(error.to_string().contains("chunk 0 is truncated: the object has 10 bytes"), "{error}");
    let (segment, _) = open(vec![0; 10], &manifest(u64::from(most), u64::from(most), &[10])).unwrap();
    let error = read(&segment, 5, 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { .. }), "{error}");
}

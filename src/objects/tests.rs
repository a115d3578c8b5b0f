//! Objects in memory, and URLs.

use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};

use super::StoreOptions;
use super::runtime::wait;
use crate::io::Location;

/// A store in memory.
pub(crate) fn store(objects: &[(&str, Vec<u8>)]) -> Arc<dyn ObjectStore> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    for (key, bytes) in objects {
        let (store, key, bytes) = (Arc::clone(&store), Key::from(*key), bytes.clone());
        wait(async move { store.put(&key, bytes.into()).await }).unwrap().unwrap();
    }
    store
}

#[test]
fn objects_are_files_in_directories() {
    let logs = store(&[
        ("logs/a-0/00000000000000000000.log", vec![1; 10]),
        ("logs/a-0/00000000000000000000.index", vec![]),
        ("logs/a-0-x/y", vec![2]),
        ("other", vec![3]),
    ]);
    let root = Location::of_objects(logs, "s3://bucket", "logs/");
    assert!(root.is_dir());
    let names = |location: &Location| -> Vec<String> {
        location.entries().unwrap().iter().map(|entry| entry.name().to_owned()).collect()
    };
    assert_eq!(names(&root), ["a-0", "a-0-x"]);
    let partition = root.join("a-0");
    assert_eq!(names(&partition), ["00000000000000000000.index", "00000000000000000000.log"]);
    let log = partition.join("00000000000000000000.log");
    assert_eq!(log.path().to_str(), Some("s3://bucket/logs/a-0/00000000000000000000.log"));
    assert_eq!(log.len().unwrap(), 10);
    assert_eq!(log.head(4).unwrap(), [1; 4]);
    assert_eq!(partition.join("00000000000000000000.index").head(4).unwrap(), [0; 0]);
    assert!(root.join("a-1").open().unwrap_err().is_not_found());
    assert!(!root.join("a-1").exists() && !root.join("a").is_dir());
    // an object with the key of a directory marks a folder, or is hidden by it, as in a file system
    let marked = store(&[("a", vec![]), ("a/b", vec![1]), ("a/b/c.log", vec![2]), ("a/d", vec![])]);
    for root in ["", "a"] {
        let root = Location::of_objects(Arc::clone(&marked), "s3://bucket", root);
        let directory = if root.name() == "a" { root } else { root.join("a") };
        assert!(directory.is_dir() && directory.join("b").is_dir());
        assert_eq!(names(&directory), ["b", "d"]);
        assert_eq!(names(&directory.join("b")), ["c.log"]);
        assert!(!directory.join("d").is_dir());
    }
    // around the prefix
    assert_eq!(root.directory().join("other").head(4).unwrap(), [3]);
    assert_eq!(names(&root.directory()), ["logs", "other"]);
}

#[test]
fn every_byte_is_read_whatever_the_positions() {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251).to_le_bytes()[0]).collect();
    let location = Location::of_objects(store(&[("a.log", bytes.clone())]), "s3://bucket", "a.log");
    let file = location.open().unwrap();
    let mut state = 7_u64;
    let mut position = 0_u64;
    for step in 0..400 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let len = usize::try_from(state >> 48).unwrap() * if step % 7 == 0 { 20 } else { 1 };
        let mut out = vec![0; len];
        let count = file.read_at(&mut out, position).unwrap();
        let start = usize::try_from(position).unwrap().min(bytes.len());
        assert_eq!(out[..count], bytes[start..(start + len).min(bytes.len())]);
        position = if step % 5 == 0 { state % 3_100_000 } else { position + u64::try_from(count).unwrap() };
    }
}

#[test]
fn announced_reads_return_the_same_bytes() {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251).to_le_bytes()[0]).collect();
    let location = Location::of_objects(store(&[("a.log", bytes.clone())]), "s3://bucket", "a.log");
    for (start, limit) in [(0, u64::MAX), (0, 10), (1_000_000, 2_000_000), (2_999_999, u64::MAX), (3_000_000, u64::MAX)]
    {
        let file = location.open().unwrap();
        file.limit_ahead(limit);
        assert_eq!(file.spare_requests(), 0);
        file.expect_reads(start);
        let mut out = vec![0; 10_000];
        let mut at = usize::try_from(start).unwrap();
        loop {
            let count = file.read_at(&mut out, u64::try_from(at).unwrap()).unwrap();
            if count == 0 {
                break;
            }
            assert_eq!(out[..count], bytes[at..at + count]);
            at += count;
        }
        assert_eq!(at, bytes.len());
        assert_eq!(file.spare_requests() > 0, start < 3_000_000);
    }
}

#[test]
fn requests_that_a_file_does_not_need_are_left_to_the_next_one() {
    let len = 20 << 20;
    let bytes: Vec<u8> = (0..len).map(|index: u32| (index % 251).to_le_bytes()[0]).collect();
    let location = Location::of_objects(store(&[("a.log", bytes.clone())]), "s3://bucket", "a.log");
    let file = location.open().unwrap();
    assert_eq!(file.request_ahead(0, 2), 0); // 16 of 20 MiB
    assert_eq!(file.request_ahead(0, 2), 0);
    assert_eq!(file.request_ahead(0, 10), 7);
    assert_eq!(file.request_ahead(0, 4), 1);
    let mut out = vec![0; bytes.len()];
    assert_eq!(file.read_at(&mut out, 0).unwrap(), bytes.len());
    assert!(out == bytes);
    assert_eq!(file.request_ahead(u64::from(len), 3), 3);
}

#[test]
fn urls_and_options_are_checked() {
    let parse = |text: &str, options: &[(&str, &str)]| {
        Location::parse(text, &StoreOptions::new(options.iter().copied())).map_err(|error| error.to_string())
    };
    assert!(parse("/data/orders-0", &[]).unwrap().is_local());
    assert_eq!(parse("file:///data", &[]).unwrap(), Location::local("/data"));
    assert!(parse("/data", &[("region", "x")]).unwrap_err().contains("no effect"));
    assert!(parse("ftp://host/x", &[]).unwrap_err().contains("ftp:// is not a known scheme"));
    for url in ["s3://", "S3:///x", "gs:///", "https:///x"] {
        assert!(parse(url, &[]).unwrap_err().contains("the URL has no bucket"), "{url}");
    }
    let timeout = parse("s3://b/x", &[("timeout", "3")]).unwrap_err();
    assert!(timeout.contains("as Duration: write a number and a unit, such as \"30s\""), "{timeout}");
    assert!(parse("s3://b/x", &[("key", "AKIA")]).unwrap_err().contains("use access_key_id"));
    let unknown = parse("s3://b/x", &[("acess_key", "hunter2")]).unwrap_err();
    assert!(unknown.contains("\"acess_key\"") && !unknown.contains("hunter2"));
    let options = StoreOptions::new([("secret_access_key", "hunter2")]);
    assert_eq!(format!("{options:?}"), "[\"secret_access_key\"]");
    let location = parse("s3a://bucket/logs/", &[("region", "eu-west-1"), ("endpoint", "http://localhost:1")]).unwrap();
    assert_eq!(location.path().to_str(), Some("s3a://bucket/logs"));
    assert!(!format!("{location:?}").contains("localhost"));
}

#[test]
fn object_that_is_replaced_is_read_as_it_is_now() {
    let objects = store(&[("a-0/offset.wm", b"1".to_vec()), ("a-0/x.log", vec![1])]);
    let root = Location::of_objects(Arc::clone(&objects), "s3://bucket", "a-0");
    let watermark = root.join("offset.wm");
    assert!(root.is_dir() && !root.join("y.log").exists_now().unwrap());
    for key in ["a-0/offset.wm", "a-0/y.log"] {
        let objects = Arc::clone(&objects);
        wait(async move { objects.put(&Key::from(key), b"22".to_vec().into()).await }).unwrap().unwrap();
    }
    assert!(watermark.read_small(10).unwrap_err().to_string().contains("was replaced"));
    assert_eq!(watermark.read_current(10).unwrap(), b"22");
    assert!(watermark.read_current(1).unwrap_err().to_string().contains("larger than 1 bytes"));
    assert!(!root.join("y.log").exists() && root.join("y.log").exists_now().unwrap());
}

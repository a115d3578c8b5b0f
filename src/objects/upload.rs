//! Uploads files: an object appears when all of its parts have arrived.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};

use super::error::converted;
use super::runtime::{Running, repeated, wait};
use crate::error::{Error, Result};
use crate::num::{u64_of, usize_from_u64};

/// Bytes of a part, and the length up to which a file is uploaded at once. S3 accepts parts from 5 MiB.
const PART_LEN: u64 = 8 << 20;
/// S3 accepts 10,000 parts.
const MAX_PARTS: u64 = 10_000;
/// Parts that are on their way at the same time.
const PARTS_AT_ONCE: usize = 4;

/// Uploads a file of the file system. An object with the same key is replaced. After an error, there is no
/// new object, unless only the answer of the store was lost.
///
/// # Errors
/// I/O errors and errors of the store.
pub(super) fn upload(store: &Arc<dyn ObjectStore>, key: &Key, from: &Path) -> Result<()> {
    let in_file = |error: std::io::Error| Error::from(error).with_path(from);
    let mut file = File::open(from).map_err(in_file)?;
    let len = file.metadata().map_err(in_file)?.len();
    if len <= PART_LEN {
        let mut bytes = Vec::with_capacity(usize_from_u64(len));
        file.read_to_end(&mut bytes).map_err(in_file)?;
        let (store, key) = (Arc::clone(store), key.clone());
        wait(async move { store.put(&key, PutPayload::from(bytes)).await })?.map_err(converted)?;
        return Ok(());
    }
    let mut upload = begin(store, key)?;
    let part_len = PART_LEN.max(len.div_ceil(MAX_PARTS));
    let sent = send_parts(&mut *upload, &mut file, part_len).map_err(|error| error.with_path(from));
    let is_sent = sent.is_ok();
    let ended = wait(async move {
        if !is_sent {
            return upload.abort().await;
        }
        let completed = upload.complete().await.map(drop);
        if completed.is_err() {
            let _ = upload.abort().await; // otherwise its parts stay, and the owner of the bucket pays for them
        }
        completed
    });
    sent?;
    ended?.map_err(converted)
}

fn begin(store: &Arc<dyn ObjectStore>, key: &Key) -> Result<Box<dyn MultipartUpload>> {
    let begun = repeated(|| {
        let (store, key) = (Arc::clone(store), key.clone());
        wait(async move { store.put_multipart(&key).await })
    });
    begun?.map_err(converted)
}

fn send_parts(upload: &mut dyn MultipartUpload, file: &mut File, part_len: u64) -> Result<()> {
    let mut running: VecDeque<Running<object_store::Result<()>>> = VecDeque::new();
    loop {
        let mut part = Vec::with_capacity(usize_from_u64(part_len));
        file.take(part_len).read_to_end(&mut part)?;
        let is_last = u64_of(part.len()) < part_len;
        if !part.is_empty() {
            running.push_back(Running::start(upload.put_part(PutPayload::from(part)))?);
        }
        while running.len() >= if is_last { 1 } else { PARTS_AT_ONCE } {
            let Some(first) = running.pop_front() else { break };
            first.wait()?.map_err(converted)?;
        }
        if is_last {
            return Ok(());
        }
    }
}

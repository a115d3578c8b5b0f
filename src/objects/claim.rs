//! Reserves a prefix, so that two results are never mixed in it.

use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use super::error::converted;
use super::runtime::{repeated, wait};
use crate::error::{Error, Result};
use crate::io::unfinished::UPLOAD;
use crate::io::unique::{not_empty, unique_name};

/// Reserves a prefix without objects. A store that can't create an object only if it does not exist reserves nothing.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the prefix is reserved or not empty; errors of
/// the store.
pub(super) fn claim(store: &Arc<dyn ObjectStore>, prefix: &Key) -> Result<()> {
    let claim = prefix.clone().join(UPLOAD);
    match create(store, &claim)? {
        Created::Yes => {}
        Created::Unsupported => return Ok(()),
        Created::No => {
            return Err(Error::argument(format!(
                "the object {UPLOAD} shows that another upload to this prefix runs, or failed: name another prefix, or \
                 delete the objects of a failed one"
            )));
        }
    }
    let objects = repeated(|| {
        let (store, prefix) = (Arc::clone(store), prefix.clone());
        wait(async move { store.list(Some(&prefix)).try_collect::<Vec<_>>().await })
    });
    // an object with the key of the prefix marks the folder
    let is_own = |object: &ObjectMeta| object.location == claim || object.location == *prefix && object.size == 0;
    let is_empty = objects?.map_err(converted).map(|objects| objects.iter().all(is_own));
    if !matches!(is_empty, Ok(true)) {
        release(store, prefix)?;
    }
    if is_empty? { Ok(()) } else { Err(not_empty()) }
}

/// Ends a reservation. The object stays if it can't be deleted, for example without the permission. That is harmless: the
/// prefix is no longer empty, so every later upload to it is refused anyway.
///
/// # Errors
/// The requests can't be sent.
pub(super) fn release(store: &Arc<dyn ObjectStore>, prefix: &Key) -> Result<()> {
    let claim = prefix.clone().join(UPLOAD);
    let deleted = repeated(|| {
        let (store, claim) = (Arc::clone(store), claim.clone());
        wait(async move { store.delete(&claim).await })
    });
    deleted.map(drop)
}

enum Created {
    Yes,
    No,
    Unsupported,
}

/// Creates the object, unless it exists.
fn create(store: &Arc<dyn ObjectStore>, claim: &Key) -> Result<Created> {
    let content = format!("kbat {} uploads to this prefix\n", unique_name());
    let created = repeated(|| {
        let (store, claim, content) = (Arc::clone(store), claim.clone(), PutPayload::from(content.clone()));
        wait(async move { store.put_opts(&claim, content, PutOptions::from(PutMode::Create)).await })
    });
    match created? {
        Ok(_) => Ok(Created::Yes),
        Err(StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) => Ok(Created::Unsupported),
        Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
            // perhaps by a request of this call whose answer was lost
            let found = repeated(|| {
                let (store, claim) = (Arc::clone(store), claim.clone());
                wait(async move { store.get(&claim).await?.bytes().await })
            });
            Ok(if found?.is_ok_and(|found| *found == *content.as_bytes()) { Created::Yes } else { Created::No })
        }
        Err(error) => Err(converted(error)),
    }
}

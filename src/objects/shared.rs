//! [`SharedStore`]: a store that a forked process opens again, because the connections belong to threads of its parent.

use std::sync::{Arc, Mutex, PoisonError};

use object_store::ObjectStore;

use super::runtime::forked;
use crate::error::Result;

/// Opens a store again.
type Reopen = dyn Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync;

/// A store, and how to open it again.
pub(super) struct SharedStore {
    /// The store, and the process that opened it.
    opened: Mutex<(u32, Arc<dyn ObjectStore>)>,
    /// `None` if the caller opened it.
    reopen: Option<Box<Reopen>>,
}

impl SharedStore {
    pub(super) fn new(store: Arc<dyn ObjectStore>, reopen: Option<Box<Reopen>>) -> Self {
        Self { opened: Mutex::new((std::process::id(), store)), reopen }
    }

    /// The store with connections of this process.
    ///
    /// # Errors
    /// In a forked child, if the caller opened the store; errors of opening it.
    pub(super) fn here(&self) -> Result<Arc<dyn ObjectStore>> {
        let process = std::process::id();
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.0 == process {
            return Ok(Arc::clone(&opened.1));
        }
        let Some(reopen) = &self.reopen else { return Err(forked()) };
        let new = reopen()?;
        let old = std::mem::replace(&mut *opened, (process, Arc::clone(&new)));
        // dropping it would wait for threads that this process does not have
        std::mem::forget(old);
        Ok(new)
    }
}

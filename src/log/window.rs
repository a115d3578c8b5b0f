//! The bytes that a reader has in memory, and who shares them.

use std::ops::Range;
use std::sync::Arc;

use crate::io::SharedBytes;

/// The bytes that a reader has in memory.
pub(super) enum Window {
    /// A part of a file.
    Read(Arc<Vec<u8>>),
    /// The entire buffer.
    Whole(SharedBytes),
}

impl Window {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Read(window) => window,
            Self::Whole(bytes) => (**bytes).as_ref(),
        }
    }
}

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}

/// The memory that contains a batch.
#[cfg(feature = "arrow")]
#[derive(Clone, Copy)]
pub(crate) enum BatchMemory<'b> {
    /// The window of a file.
    Window(&'b Arc<Vec<u8>>),
    /// A buffer with shared ownership.
    Buffer(&'b SharedBytes),
}

/// Largest number of windows to keep for reuse.
const LENT_WINDOWS: usize = 8;

/// Moves the unread bytes to the front of a window that is not shared.
pub(super) fn own_window<'w>(
    window: &'w mut Arc<Vec<u8>>,
    lent: &mut Vec<Arc<Vec<u8>>>,
    unread: Range<usize>,
) -> &'w mut Vec<u8> {
    if Arc::get_mut(window).is_some() {
        let own = Arc::make_mut(window);
        own.copy_within(unread, 0);
        return own;
    }
    let free = lent.iter_mut().position(|window| Arc::get_mut(window).is_some());
    let other = free.map_or_else(Arc::default, |index| lent.swap_remove(index));
    let held = std::mem::replace(window, other);
    let (own, bytes) = (Arc::make_mut(window), held.get(unread).unwrap_or_default());
    if own.len() < bytes.len() {
        own.resize(bytes.len(), 0);
    }
    if let Some(front) = own.get_mut(..bytes.len()) {
        front.copy_from_slice(bytes);
    }
    if lent.len() < LENT_WINDOWS {
        lent.push(held);
    }
    own
}

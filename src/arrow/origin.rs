//! [`Origin`]: where records are from.

use std::sync::Arc;

/// Topic, partition and path of the records of one file or buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) topic: Option<Arc<str>>,
    pub(crate) partition: Option<i32>,
    pub(crate) segment: Option<Arc<str>>,
}

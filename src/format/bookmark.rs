//! [`Bookmark`]: the state of an iteration over records, from which a later iteration over the same bytes resumes.

/// The state of an iteration.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bookmark {
    pub(crate) consumed: usize,
    pub(crate) index: u32,
    pub(crate) done: bool,
    /// For a v0 or v1 set, the result of its first pass.
    pub(crate) set: Option<LegacySet>,
}

/// The state of a compressed set after its first pass: the length of its complete messages, and the wrapper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LegacySet {
    pub(crate) len: usize,
    pub(crate) wrapper: Wrapper,
}

/// Properties of a wrapper that apply to the messages in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrapper {
    /// The difference between record offsets and inner offsets.
    pub(crate) shift: i64,
    pub(crate) log_append_time: Option<i64>,
}

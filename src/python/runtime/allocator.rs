//! The wheel's allocator.
//!
//! A scan allocates and frees Arrow buffers of a megabyte and more. The system's allocator returns each to the
//! kernel and maps it again, which took half of the time of a scan; mimalloc keeps them for reuse. The Rust
//! crate does not set an allocator.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`; the bindings do not define it.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Milliseconds before freed memory returns to the system. mimalloc's default of 10 is shorter than one scan of
/// a segment.
const PURGE_DELAY_MS: core::ffi::c_long = 10_000;

/// Sets the allocator's options. Called once, when the module is loaded.
#[expect(unsafe_code, reason = "the allocator has only a C interface for its options")]
pub(crate) fn configure() {
    // SAFETY: the function must not be called from two threads at once; one thread initializes the module. Its range
    // check ignores an option that this version does not know.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) }
}

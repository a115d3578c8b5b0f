//! The wheel's allocator.
//!
//! Arrow buffers of a megabyte and more come and go. The system's allocator returns each to the kernel and faults it in again,
//! which took half of the time of a scan; mimalloc keeps them for a while. The Rust crate leaves the choice to its user.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`, for which the bindings have no name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Milliseconds that freed memory is kept before it goes back to the system; mimalloc's default of 10 is less than a pass over
/// a segment takes.
const PURGE_DELAY_MS: core::ffi::c_long = 10_000;

/// Sets the allocator's options; called once, when the module is loaded.
#[expect(unsafe_code, reason = "the allocator's options are set through its C interface")]
pub(crate) fn configure() {
    // SAFETY: the function asks not to be called from two threads at once; a module is initialised by one thread. An option
    // that this version does not know is ignored by its range check.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) }
}

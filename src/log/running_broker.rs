//! Detects a broker that uses a log directory.

use std::path::Path;

use crate::error::{Error, Result};

/// Refuses a partition whose log directory a broker has locked.
///
/// A broker holds a lock on the file `.lock` of its log directory. Linux lists all locks in `/proc/locks`. On other
/// systems, and if that list does not show the locks of another container or host, the broker is not detected.
pub(crate) fn refuse_running_broker(partition: &Path) -> Result<()> {
    let absolute = std::path::absolute(partition)?;
    let Some(lock) = absolute.parent().map(|directory| directory.join(".lock")) else { return Ok(()) };
    if is_locked(&lock) {
        let message = format!("a broker holds {}: stop the broker, or recover into a copy", lock.display());
        return Err(Error::argument(message));
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn is_locked(file: &Path) -> bool {
    use std::os::linux::fs::MetadataExt;

    let Ok(metadata) = std::fs::metadata(file) else { return false };
    let device = metadata.st_dev();
    let major = ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff);
    let minor = (device & 0xff) | ((device >> 12) & !0xff);
    // 1: POSIX  ADVISORY  WRITE 708 08:01:131081 0 EOF
    let place = format!("{major:02x}:{minor:02x}:{}", metadata.st_ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().any(|line| line.split_whitespace().any(|word| word == place))
}

#[cfg(not(target_os = "linux"))]
fn is_locked(_: &Path) -> bool {
    false
}

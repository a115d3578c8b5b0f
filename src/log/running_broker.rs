//! Detects a broker that uses a log directory.

use std::path::Path;

use crate::error::{Error, Result};

/// Refuses a partition whose log directory a broker has locked.
///
/// A broker holds a lock on the file `.lock` of its log directory. It is detected on Linux only, and on a network file
/// system only if its locks reach other hosts.
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
    locks.lines().any(|line| line.split_whitespace().any(|word| word == place)) || is_locked_by_other(file)
}

/// Whether another process has a lock on the file. The list omits those of other containers, and shows files on btrfs
/// with another device. It is read first, because closing the file would end a lock that this process has on it.
#[cfg(target_os = "linux")]
fn is_locked_by_other(file: &Path) -> bool {
    use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};

    let Ok(opened) = std::fs::File::open(file) else { return false };
    let whole = Flock { start: 0, length: 0, pid: None, typ: FlockType::WriteLock, offset_type: FlockOffsetType::Set };
    fcntl_getlk(&opened, &whole).is_ok_and(|found| found.is_some())
}

#[cfg(not(target_os = "linux"))]
fn is_locked(_: &Path) -> bool {
    false
}

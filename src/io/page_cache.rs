//! Reading without changing the page cache, so that an audit does not evict what a broker on the same machine serves
//! from it.
//!
//! - Small reads, such as batch headers, bypass the page cache (`O_DIRECT`) if the file system allows it. They read
//!   sectors of 512 bytes from disk instead of pages of 4096.
//! - Other reads leave it to the kernel (`RWF_DONTCACHE`, Linux 6.14), if the file system supports that.
//! - On older kernels, a read first takes the bytes that are already cached, at most 64 KiB at a time. It then reads
//!   the uncached rest from disk and drops those pages again. The result is not exact in two cases: cached pages after
//!   an uncached byte in the same 64 KiB are dropped too, and pages that a fast disk delivers during the check are
//!   treated as cached.
//! - Other systems read normally.

use std::fs::File;
use std::io::Result;

#[cfg(target_os = "linux")]
use crate::num::{u64_of, usize_from_u64};
#[cfg(target_os = "linux")]
use crate::slices::Slices;

/// Number of bytes whose pages are dropped together.
#[cfg(target_os = "linux")]
const PIECE_LEN: u64 = 1 << 16;
/// Page size in bytes on the machines that brokers run on.
#[cfg(target_os = "linux")]
const PAGE_LEN: u64 = 4096;

/// Sector size of a disk in bytes, and the alignment of the memory read into.
#[cfg(target_os = "linux")]
const SECTOR_LEN: u64 = 512;
/// Reads of fewer bytes than this bypass the page cache.
#[cfg(target_os = "linux")]
const SMALL_LEN: usize = 4096;

#[cfg(unix)]
pub(super) fn read_some(file: &File, out: &mut [u8], position: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, position)
}

#[cfg(windows)]
pub(super) fn read_some(file: &File, out: &mut [u8], position: u64) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, position)
}

/// A file opened to bypass the page cache.
#[derive(Debug)]
pub(super) struct Direct(File);

#[cfg(target_os = "linux")]
impl Direct {
    /// Returns `None` if the file system or its disk does not support reads of single sectors.
    pub(super) fn open(path: &std::path::Path) -> Option<Self> {
        use std::os::unix::fs::OpenOptionsExt;

        let flags = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).ok()?;
        let direct = Self(std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?);
        direct.read_at(&mut [0; 1], SECTOR_LEN).is_ok().then_some(direct)
    }

    pub(super) fn takes(out: &[u8]) -> bool {
        out.len() < SMALL_LEN
    }

    pub(super) fn read_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        let start = position.saturating_sub(position % SECTOR_LEN);
        let end = position.saturating_add(u64_of(out.len())).div_ceil(SECTOR_LEN).saturating_mul(SECTOR_LEN);
        let len = usize_from_u64(end.saturating_sub(start));
        let mut memory = vec![0_u8; len.saturating_add(usize_from_u64(SECTOR_LEN))];
        let first = memory.as_ptr().align_offset(usize_from_u64(SECTOR_LEN));
        let sectors = memory.part_mut(first..first.saturating_add(len));
        let count = read_some(&self.0, sectors, start)?;
        let wanted = sectors.get(..count).and_then(|read| read.get(usize_from_u64(position.saturating_sub(start))..));
        let wanted = wanted.unwrap_or_default();
        let wanted = wanted.part(..wanted.len().min(out.len()));
        for (to, from) in out.iter_mut().zip(wanted) {
            *to = *from;
        }
        Ok(wanted.len())
    }
}

#[cfg(not(target_os = "linux"))]
impl Direct {
    pub(super) fn open(_path: &std::path::Path) -> Option<Self> {
        None
    }

    pub(super) fn takes(_out: &[u8]) -> bool {
        false
    }

    pub(super) fn read_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        read_some(&self.0, out, position)
    }
}

/// Turns off read-ahead, which would cache pages that are never dropped.
#[cfg(target_os = "linux")]
pub(super) fn expect_scattered_reads(file: &File) {
    use rustix::fs::{Advice, fadvise};

    // only a hint: a file system that ignores it returns the same bytes
    let _ = fadvise(file, 0, None, Advice::Random);
}

/// Reads some bytes at a position. Pages that were not cached before are not cached after.
#[cfg(target_os = "linux")]
pub(super) fn read_at(file: &File, out: &mut [u8], position: u64) -> Result<usize> {
    use std::io::IoSliceMut;

    use rustix::io::{Errno, ReadWriteFlags, preadv2};

    /// `RWF_DONTCACHE` of Linux 6.14.
    const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

    match preadv2(file, &mut [IoSliceMut::new(out)], position, DONTCACHE) {
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {} // not supported by this kernel or file system
        read => return Ok(read?),
    }
    let piece_len = usize_from_u64(PIECE_LEN.saturating_sub(position % PIECE_LEN)).min(out.len());
    let piece = out.part_mut(..piece_len);
    // an error is EAGAIN if nothing is cached, or means that the file system does not support the flag
    if let Ok(count) = preadv2(file, &mut [IoSliceMut::new(piece)], position, ReadWriteFlags::NOWAIT) {
        return Ok(count);
    }
    let count = read_some(file, piece, position)?;
    drop_pages(file, position, u64_of(count));
    Ok(count)
}

/// Drops the pages that overlap a range.
#[cfg(target_os = "linux")]
fn drop_pages(file: &File, position: u64, len: u64) {
    use rustix::fs::{Advice, fadvise};

    let start = position.saturating_sub(position % PAGE_LEN);
    let end = position.saturating_add(len).div_ceil(PAGE_LEN).saturating_mul(PAGE_LEN);
    if let Some(len) = std::num::NonZeroU64::new(end.saturating_sub(start)) {
        let _ = fadvise(file, start, Some(len), Advice::DontNeed);
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn expect_scattered_reads(_file: &File) {}

#[cfg(not(target_os = "linux"))]
pub(super) fn read_at(file: &File, out: &mut [u8], position: u64) -> Result<usize> {
    read_some(file, out, position)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::path::Path;
    use std::process::Command;

    use super::{PAGE_LEN, drop_pages, expect_scattered_reads, read_some};
    use crate::io::PositionedFile;
    use crate::num::{u64_of, usize_from_u64};

    /// Number of cached pages of a file, counted by util-linux's fincore.
    fn cached_pages(path: &Path) -> Option<u64> {
        let output =
            Command::new("fincore").args(["--raw", "--noheadings", "--output", "PAGES"]).arg(path).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    }

    #[test]
    fn read_at_leaves_the_page_cache_as_it_was() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("target/page-cache-{}", std::process::id()));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let len = 640 * PAGE_LEN;
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; usize_from_u64(len)]).unwrap();
        file.sync_all().unwrap();
        let file = File::open(&path).unwrap();
        expect_scattered_reads(&file);
        drop_pages(&file, 0, len);
        let at_first = cached_pages(&path);
        assert_eq!(read_some(&file, &mut [0; 1], 320 * PAGE_LEN).unwrap(), 1);
        let before = cached_pages(&path);

        let mut reader = PositionedFile::open(&path).unwrap();
        reader.leave_page_cache();
        let mut out = vec![0; 100_000];
        let mut position = 0;
        while position < len {
            let count = reader.read_at(&mut out, position).unwrap();
            assert!(count > 0 && out[..count].iter().all(|byte| *byte == 7));
            position += u64_of(count);
        }
        let after = cached_pages(&path);
        std::fs::remove_file(&path).unwrap();
        // in-memory file systems cannot drop pages, and fincore may not be installed
        if at_first == Some(0) {
            assert_eq!((before, after), (Some(1), Some(1)));
        }
    }
}

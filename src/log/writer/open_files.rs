//! How many logs a process can keep open.

/// Files of an open log.
const FILES_OF_A_LOG: u64 = 4;
/// The limit of open files if the system does not report it.
#[cfg(not(target_os = "linux"))]
const OPEN_FILES: u64 = 256;

/// The largest number of logs that this process should have open: they use at most half of its open files.
pub(crate) fn max_open_logs() -> usize {
    logs_within(max_open_files())
}

/// The number of logs for a limit of open files; `None` for no limit.
fn logs_within(files: Option<u64>) -> usize {
    let logs = files.map_or(u64::MAX, |files| files.checked_div(FILES_OF_A_LOG.saturating_mul(2)).unwrap_or(0));
    usize::try_from(logs).unwrap_or(usize::MAX).max(1)
}

#[cfg(target_os = "linux")]
fn max_open_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(target_os = "linux"))]
fn max_open_files() -> Option<u64> {
    Some(OPEN_FILES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_use_half_of_the_open_files() {
        let cases = [(Some(1024), 128), (Some(1 << 20), 131_072), (Some(8), 1), (Some(0), 1), (None, usize::MAX)];
        for (files, logs) in cases {
            assert_eq!(logs_within(files), logs, "{files:?}");
        }
    }
}

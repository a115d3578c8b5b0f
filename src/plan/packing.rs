//! Packs pieces into tasks.

use crate::plan::pieces::Piece;

/// A task with fewer bytes takes most of its time to start.
pub(super) const MIN_TASK_LEN: u64 = 4 << 20;

/// Groups adjacent pieces into tasks of similar size, at most `max_len` bytes; a larger piece is a task of its own.
///
/// There are as many tasks as that requires, or one for each core if each then has [`MIN_TASK_LEN`] bytes. No task has
/// more than `max_offset_count` offsets.
pub(super) fn pack(pieces: Vec<Piece>, max_len: u64, cores: u64, max_offset_count: Option<i64>) -> Vec<Vec<Piece>> {
    let total = pieces.iter().fold(0_u64, |total, piece| total.saturating_add(piece.size()));
    let by_len = total.div_ceil(max_len.max(1));
    let by_cores = cores.min(total.checked_div(MIN_TASK_LEN).unwrap_or(0));
    let count = u128::from(by_len.max(by_cores).max(1));
    let most = max_offset_count.unwrap_or(i64::MAX);
    let mut groups = Vec::new();
    let mut run: Vec<Piece> = Vec::new();
    let (mut run_len, mut run_count, mut run_place, mut start) = (0_u64, 0_i64, 0_u128, 0_u64);
    for piece in pieces {
        // a piece belongs to the task whose share of all bytes contains its middle
        let middle = u128::from(start).saturating_mul(2).saturating_add(u128::from(piece.size()));
        let place = middle.saturating_mul(count).checked_div(u128::from(total).saturating_mul(2)).unwrap_or(0);
        let is_full =
            run_len.saturating_add(piece.size()) > max_len || run_count.saturating_add(piece.offset_count) > most;
        if !run.is_empty() && (place != run_place || is_full) {
            groups.push(std::mem::take(&mut run));
            (run_len, run_count) = (0, 0);
        }
        run_len = run_len.saturating_add(piece.size());
        run_count = run_count.saturating_add(piece.offset_count);
        run_place = place;
        start = start.saturating_add(piece.size());
        run.push(piece);
    }
    if !run.is_empty() {
        groups.push(run);
    }
    groups
}

/// Divides groups where the partition changes.
pub(super) fn apart(groups: &[Vec<Piece>]) -> Vec<Vec<Piece>> {
    groups.iter().flat_map(|group| group.chunk_by(is_of_one_log).map(<[Piece]>::to_vec)).collect()
}

/// Whether two pieces are of the same partition.
pub(super) fn is_of_one_log(one: &Piece, other: &Piece) -> bool {
    one.topic == other.topic && one.partition == other.partition
}

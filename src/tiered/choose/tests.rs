use super::*;

fn segment(start_offset: i64, last_offset: i64, epochs: &[(i32, i64)]) -> Candidate {
    Candidate { start_offset, last_offset: Some(last_offset), leader_epochs: entries(epochs), ..Candidate::default() }
}

fn entries(epochs: &[(i32, i64)]) -> Vec<EpochEntry> {
    epochs.iter().map(|(epoch, start_offset)| EpochEntry { epoch: *epoch, start_offset: *start_offset }).collect()
}

/// Index and offsets of each link.
fn links(chain: &Chain) -> Vec<(usize, Range<i64>)> {
    chain.links.iter().map(|link| (link.index, link.offsets.clone())).collect()
}

/// Index, offsets and reason of each omission.
fn omitted(chain: &Chain) -> Vec<(usize, Option<Range<i64>>, Reason)> {
    chain.omitted.iter().map(|omission| (omission.index, omission.offsets.clone(), omission.reason)).collect()
}

#[test]
fn consecutive_segments_are_all_read() {
    let segments = [segment(100, 199, &[(0, 0)]), segment(0, 99, &[(0, 0)]), segment(200, 200, &[(0, 0)])];
    let chain = choose(&segments, None, None);
    assert_eq!(links(&chain), [(1, 0..100), (0, 100..200), (2, 200..201)]);
    assert!(chain.omitted.is_empty() && chain.gaps.is_empty());
    assert!(chain.links.iter().all(|link| link.end_is_known));
    assert_eq!(choose(&[], None, Some(5)), Chain::default());
}

#[test]
fn states_that_are_not_finished_are_omitted() {
    let states = [
        (Some(SegmentState::CopyStarted), Some(Reason::CopyNotFinished)),
        (Some(SegmentState::CopyFinished), None),
        (Some(SegmentState::DeleteStarted), Some(Reason::DeleteStarted)),
        (Some(SegmentState::DeleteFinished), Some(Reason::Deleted)),
        (None, None),
    ];
    for (state, reason) in states {
        let chain = choose(&[Candidate { state, ..segment(0, 9, &[]) }], None, None);
        assert_eq!(chain.links.len(), usize::from(reason.is_none()));
        assert_eq!(chain.omitted.first().map(|omission| omission.reason), reason);
    }
    let incomplete = Candidate { is_incomplete: true, ..segment(0, 9, &[]) };
    assert_eq!(omitted(&choose(&[incomplete], None, None)), [(0, None, Reason::Incomplete)]);
    let unrecorded = Candidate { is_unrecorded: true, ..segment(0, 9, &[]) };
    assert_eq!(omitted(&choose(&[unrecorded], None, None)), [(0, None, Reason::Unrecorded)]);
    assert_eq!(omitted(&choose(&[segment(5, 4, &[])], None, None)), [(0, None, Reason::Empty)]);
}

#[test]
fn gaps_are_returned() {
    let segments = [segment(10, 19, &[]), segment(30, 39, &[]), segment(40, 49, &[])];
    assert_eq!(choose(&segments, None, None).gaps.first(), Some(&(20..30)));
    assert_eq!(choose(&segments, None, Some(5)).gaps, [5..10, 20..30]);
}

#[test]
fn second_copy_is_a_duplicate_and_the_last_one_is_read() {
    let first = Candidate { preference: 1, ..segment(0, 99, &[(0, 0)]) };
    let second = Candidate { preference: 2, ..segment(0, 99, &[(0, 0)]) };
    let chain = choose(&[first.clone(), second.clone()], None, None);
    assert_eq!((links(&chain), omitted(&chain)), (vec![(1, 0..100)], vec![(0, None, Reason::Duplicate { of: 1 })]));
    let chain = choose(&[second, first], None, None);
    assert_eq!((links(&chain), omitted(&chain)), (vec![(0, 0..100)], vec![(1, None, Reason::Duplicate { of: 0 })]));
}

/// The two cases in the comments of `RemoteLogLeaderEpochState`.
#[test]
fn overlaps_are_read_once() {
    let chain = choose(&[segment(0, 100, &[]), segment(0, 200, &[])], None, None);
    assert_eq!((links(&chain), omitted(&chain)), (vec![(1, 0..201)], vec![(0, None, Reason::Covered { by: 1 })]));
    let segments = [segment(10, 90, &[]), segment(5, 100, &[]), segment(101, 200, &[])];
    let chain = choose(&segments, None, None);
    assert_eq!(links(&chain), [(1, 5..101), (2, 101..201)]);
    assert_eq!(omitted(&chain), [(0, None, Reason::Covered { by: 1 })]);
    // different borders: a part of the second is read
    let chain = choose(&[segment(0, 120, &[]), segment(100, 200, &[])], None, None);
    assert_eq!(links(&chain), [(0, 0..121), (1, 121..201)]);
    assert_eq!(omitted(&chain), [(1, Some(100..121), Reason::Covered { by: 0 })]);
}

#[test]
fn log_start_offset_bounds_the_chain() {
    let segments = [segment(0, 99, &[]), segment(100, 199, &[]), segment(200, 299, &[])];
    let chain = choose(&segments, None, Some(150));
    assert_eq!(links(&chain), [(1, 150..200), (2, 200..300)]);
    assert_eq!(omitted(&chain), [(0, None, Reason::BeforeLogStart), (1, Some(100..150), Reason::BeforeLogStart)]);
    assert!(choose(&segments, None, Some(300)).links.is_empty());
}

/// The leader of epoch 3 wrote 120..199. The leader of epoch 4 knew only the records up to 149.
#[test]
fn deposed_leader_is_recognized_by_its_epochs() {
    let segments = [
        segment(0, 119, &[(0, 0)]),
        segment(120, 199, &[(0, 0), (3, 120)]),
        segment(120, 249, &[(0, 0), (3, 120), (4, 150)]),
    ];
    let chain = choose(&segments, None, None);
    assert_eq!(links(&chain), [(0, 0..120), (2, 120..250)]);
    assert_eq!(
        omitted(&chain),
        [(1, Some(150..200), Reason::DeposedLeader { epoch: 3 }), (1, None, Reason::Covered { by: 2 })]
    );
    // the same if the new leader did not copy the common part
    let segments = [segment(120, 199, &[(3, 120)]), segment(150, 249, &[(4, 150)])];
    let chain = choose(&segments, None, None);
    assert_eq!(links(&chain), [(0, 120..150), (1, 150..250)]);
    assert_eq!(omitted(&chain), [(0, Some(150..200), Reason::DeposedLeader { epoch: 3 })]);
}

#[test]
fn epoch_that_the_partition_lost_is_omitted() {
    let lineage = LeaderEpochs::from_entries(entries(&[(0, 0), (3, 120), (4, 150)]));
    let segments = [
        segment(0, 119, &[(0, 0)]),
        segment(100, 140, &[(0, 0), (2, 100)]),
        segment(120, 149, &[(3, 120)]),
        segment(150, 180, &[(3, 150)]),
        segment(150, 190, &[(4, 150)]),
    ];
    let chain = choose(&segments, Some(&lineage), None);
    assert_eq!(links(&chain), [(0, 0..120), (2, 120..150), (4, 150..191)]);
    assert_eq!(
        omitted(&chain),
        [(1, None, Reason::DeposedLeader { epoch: 2 }), (3, None, Reason::DeposedLeader { epoch: 3 })]
    );
}

#[test]
fn lineage_that_is_older_or_truncated_omits_nothing() {
    let lineage = LeaderEpochs::from_entries(entries(&[(3, 120)]));
    let segments = [segment(0, 119, &[(0, 0)]), segment(120, 149, &[(3, 120)]), segment(150, 190, &[(7, 150)])];
    let chain = choose(&segments, Some(&lineage), None);
    assert_eq!(links(&chain), [(0, 0..120), (1, 120..150), (2, 150..191)]);
    assert!(chain.omitted.is_empty());
}

#[test]
fn unknown_ends_reach_to_the_next_segment() {
    let unknown = |start| Candidate { last_offset: None, ..segment(start, 0, &[(0, start)]) };
    let chain = choose(&[unknown(200), unknown(0), unknown(200), unknown(500)], None, None);
    assert_eq!(links(&chain), [(1, 0..200), (0, 200..500), (3, 500..i64::MAX)]);
    assert_eq!(omitted(&chain), [(2, None, Reason::Duplicate { of: 0 })]);
    assert!(chain.links.iter().all(|link| !link.end_is_known));
    let lineage = LeaderEpochs::from_entries(entries(&[(0, 0), (1, 300)]));
    let chain = choose(&[unknown(200)], Some(&lineage), None);
    assert_eq!((links(&chain), chain.links[0].end_is_known), (vec![(0, 200..300)], false));
}

#[test]
fn extreme_offsets_do_not_overflow() {
    let segments = [segment(i64::MIN, i64::MAX, &[(i32::MIN, i64::MIN)]), segment(i64::MAX, i64::MAX, &[])];
    let chain = choose(&segments, None, Some(i64::MIN));
    assert_eq!(links(&chain), [(0, i64::MIN..i64::MAX)]);
}

#[test]
fn an_old_copy_of_the_epochs_does_not_let_a_deposed_leader_in() {
    let old = LeaderEpochs::from_entries(entries(&[(0, 0)]));
    let segments =
        [segment(10, 19, &[(0, 0), (1, 10)]), segment(0, 13, &[(0, 0), (2, 10)]), segment(14, 15, &[(0, 0), (2, 10)])];
    let chain = choose(&segments, Some(&old), None);
    assert_eq!(links(&chain), [(1, 0..14), (2, 14..16)]);
    assert_eq!(omitted(&chain), [(0, None, Reason::DeposedLeader { epoch: 1 })]);
    assert_eq!(links(&chain), links(&choose(&segments, None, None)));
}

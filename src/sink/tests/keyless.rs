//! Rows without a key.

use super::*;

/// The partition of each value of rows without a key, which are written `chunk` at a time.
fn partitions_without_keys(path: &Path, number: u32, rows: &[String], chunk: usize) -> BTreeMap<String, String> {
    let job = job_with(path, &[("topic", "t"), ("numPartitions", "3")], false).unwrap();
    let mut writer = TaskWriter::new(&job, number, 0).unwrap();
    for part in rows.chunks(chunk) {
        let values: ArrayRef = Arc::new(part.iter().map(Some).collect::<StringArray>());
        writer.write(&RecordBatch::try_from_iter([("value", values)]).unwrap()).unwrap();
    }
    job.commit(&[writer.finish().unwrap()]).unwrap();
    let found = contents(path).into_iter();
    found.flat_map(|(name, records)| records.into_iter().map(move |(_, value)| (value, name.clone()))).collect()
}

#[test]
fn rows_without_a_key_take_turns_whatever_the_batches_are() {
    let rows: Vec<String> = (0..40).map(|number| format!("{number:02}").repeat(50_000)).collect();
    let of_chunk = |chunk: usize| {
        let target = TargetDirectory::new(&format!("turns-{chunk}"));
        partitions_without_keys(&target.0, 1, &rows, chunk)
    };
    let found = of_chunk(1);
    let order: Vec<&str> = rows.iter().map(|row| found.get(row).unwrap().as_str()).collect();
    let turns: Vec<(&str, usize)> = order.chunk_by(|a, b| a == b).map(|turn| (turn[0], turn.len())).collect();
    assert_eq!(turns, [("t-2", 11), ("t-0", 11), ("t-1", 11), ("t-2", 7)]);
    for chunk in [7, 40] {
        assert_eq!(of_chunk(chunk), found);
    }
}

/// Also if each write adds a segment to every partition.
#[test]
fn small_writes_of_rows_without_a_key_use_all_partitions() {
    let target = TargetDirectory::new("small-writes");
    let (mut found, mut before) = (BTreeMap::new(), Vec::new());
    for number in 0..30 {
        write(&target.0, &[numbered("t-0", 0..1), numbered("t-1", 0..1), numbered("t-2", 0..1)].concat());
        found = partitions_without_keys(&target.0, 0, &[format!("value {number}")], 1);
        before.push(found.get(&format!("value {number}")).unwrap().clone());
    }
    let counts = ["t-0", "t-1", "t-2"].map(|name| before.iter().filter(|used| *used == name).count());
    assert!(counts.iter().all(|count| *count >= 5), "{counts:?}");
    assert!(found.len() >= 30);
}

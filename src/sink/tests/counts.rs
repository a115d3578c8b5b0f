//! The number of partitions of a topic.

use super::*;

fn write_values(path: &Path, column: &str, values: &[&str], overwrite: bool) {
    let columns = pairs(&[("key", "string"), ("value", "string")]);
    let options = [("path", path.to_str().unwrap()), ("topic", "t")];
    let job = WriteJob::start(&pairs(&options), &columns, overwrite).unwrap();
    let mut writer = TaskWriter::new(&job, 0, 0).unwrap();
    let texts: ArrayRef = Arc::new(values.iter().copied().map(Some).collect::<StringArray>());
    let rows = if column == "value" { vec![("value", texts)] } else { vec![(column, texts.clone()), ("value", texts)] };
    writer.write(&RecordBatch::try_from_iter(rows).unwrap()).unwrap();
    job.commit(&[Written::from_bytes(&writer.finish().unwrap().to_bytes().unwrap()).unwrap()]).unwrap();
}

/// Otherwise the same key would go to another partition in the next write.
#[test]
fn overwritten_topic_keeps_its_number_of_partitions() {
    for column in ["key", "value"] {
        let target = TargetDirectory::new(&format!("counts-{column}"));
        let path = &target.0;
        write(path, &["t-0", "t-1", "t-4", "u-0"].map(|name| numbered(name, 0..2)).concat());
        write_values(path, column, &["x"], true);
        assert_eq!(names(path), ["t-0", "t-1", "t-2", "t-3", "t-4", "u-0"], "{column}");
        let records = contents(path);
        let holder = |value: &str| records.iter().find(|(_, rows)| rows.iter().any(|row| row.1 == value)).unwrap().0;
        assert_eq!(records.values().map(Vec::len).sum::<usize>(), 3);
        let first = holder("x").clone();
        assert_sound(path);
        if column == "key" {
            write_values(path, column, &["x"], false);
            assert_eq!(contents(path)[&first], [(0, "x".to_owned()), (1, "x".to_owned())]);
        }
    }
}

/// With partitions of their own, the rows say which there are.
#[test]
fn overwritten_topic_has_the_partitions_of_its_rows() {
    let target = TargetDirectory::new("counts-rows");
    let path = &target.0;
    write(path, &["t-0", "t-1", "t-4"].map(|name| numbered(name, 0..2)).concat());
    let job = job_with(path, &[], true).unwrap();
    let written = task(&job, 0, &numbered("t-1", 5..6));
    job.commit(&[written]).unwrap();
    assert_eq!(contents(path), expected(&[("t-1", &[5..6])]));
}

//! Opens a partition directory for writing: treats the last segment as a broker does on an unclean start.

use std::fs;
use std::path::Path;

use super::active::ActiveSegment;
use super::options::LogWriterOptions;
use super::state::PartitionState;
use crate::error::{Error, ErrorKind, Result};
use crate::io::atomic::sync_directory;
use crate::io::{Location, ReadAt};
use crate::log::checkpoint::PartitionMetadata;
use crate::log::inventory::Inventory;
use crate::log::partition::log_starts;
use crate::log::reader::SegmentReader;
use crate::log::running_broker::refuse_running_broker;
use crate::log::tail::SegmentTail;
use crate::log::walk::{BatchWalk, WalkEvent};
use crate::store::listing::{refuse_compressed, refuse_log_directory, refuse_special_files};
use crate::store::names::{LogFileKind, PARTITION_METADATA, parse_partition_directory};
use crate::store::{foreign_file, refuse_foreign_directory};

/// A partition that is ready to be appended to.
pub(super) struct OpenedPartition {
    pub(super) segment: ActiveSegment,
    pub(super) state: PartitionState,
    pub(super) start_offset: i64,
    pub(super) end_offset: i64,
    /// Number of bytes removed from the end of the last segment.
    pub(super) truncated_bytes: u64,
}

/// Opens the files of a directory. Creates the first segment of an empty one.
pub(super) fn open(directory: &Path, options: &LogWriterOptions) -> Result<OpenedPartition> {
    refuse_running_broker(directory)?;
    let location = Location::local(directory);
    refuse_log_directory(&location)?;
    check_topic_id(directory, options)?;
    let listed = location.entries()?;
    refuse_special_files(&listed)?;
    let mut inventory = Inventory::read(&location, &options.limits)?;
    inventory.refuse_damaged_swap()?;
    refuse_compressed(&listed)?;
    inventory.apply()?;
    let mut state = PartitionState::read(directory, &options.limits)?;
    let segments: Vec<_> = inventory.of_kind(LogFileKind::Log).collect();
    let snapshots: Vec<_> = inventory.of_kind(LogFileKind::ProducerSnapshot).collect();
    let start_offset = segments.first().map_or(options.start_offset, |(base_offset, _)| *base_offset);
    let base_offset = segments.last().map_or(start_offset, |(base_offset, _)| *base_offset);
    let earlier = segments.split_last().map_or(&[][..], |(_, earlier)| earlier);
    state.load_producers(&snapshots, earlier, base_offset)?;
    state.load_epochs(earlier);
    if segments.is_empty() {
        refuse_foreign_directory(&location)?;
    }
    let (segment, end_offset, truncated_bytes) = if segments.is_empty() {
        check_log_start(&location, base_offset)?;
        (ActiveSegment::create(directory, base_offset, options)?, base_offset, 0)
    } else {
        let mut segment = ActiveSegment::reopen(directory, base_offset, options)?;
        let mut walk = BatchWalk::new(SegmentReader::open_with(segment.path(), &options.limits)?, &options.limits);
        let end_offset = note_batches(&mut walk, &mut segment, &mut state)?;
        check_tail(walk.reader.source(), &segment, end_offset, options)?;
        check_log_start(&location, end_offset)?;
        let truncated_bytes = segment.cut()?;
        segment.restart_indexes(options)?;
        (segment, end_offset, truncated_bytes)
    };
    state.truncate(&snapshots, &segments, end_offset)?;
    state.write_epochs()?;
    sync_directory(directory).map_err(|error| Error::from(error).with_path(directory))?;
    Ok(OpenedPartition { segment, state, start_offset, end_offset, truncated_bytes })
}

/// Notes a segment's batches up to the first that is incomplete or corrupt. Returns the offset after them.
fn note_batches(walk: &mut BatchWalk, segment: &mut ActiveSegment, state: &mut PartitionState) -> Result<i64> {
    let mut end_offset = segment.base_offset();
    loop {
        let batch = match walk.next_batch()? {
            WalkEvent::Batch(batch) => batch,
            WalkEvent::Corrupt { error, .. } if error.is_of_reading() => return Err(error),
            WalkEvent::Corrupt { .. } | WalkEvent::End => return Ok(end_offset),
        };
        if batch.last_offset() < end_offset {
            let message = format!(
                "the batch ends at offset {}, but the previous one ends at {}; salvage copies the batches that are in \
                 order to another directory",
                batch.last_offset(),
                end_offset.saturating_sub(1)
            );
            return Err(Error::new(ErrorKind::InvalidFile(message)).at(batch.position()).with_path(segment.path()));
        }
        // its checksum is correct, so any error is not due to an interrupted write, and the batch must not be removed
        let aborted = state.note(&batch)?;
        segment.note(&batch, aborted)?;
        end_offset = batch.next_offset();
    }
}

/// Refuses to remove complete batches. They cannot follow an interrupted write, so something else corrupted the log.
fn check_tail(log: &dyn ReadAt, segment: &ActiveSegment, end_offset: i64, options: &LogWriterOptions) -> Result<()> {
    if segment.size() >= log.byte_len()? {
        return Ok(());
    }
    if segment.size() == 0
        && let Some(what) = foreign_file(&segment.path().into())?
    {
        let message = format!("the segment is {what}, not a log, and opening it for writing would empty it");
        return Err(Error::new(ErrorKind::InvalidFile(message)).with_path(segment.path()));
    }
    let tail = SegmentTail::search(log, segment.size(), Some(end_offset), &options.limits)?;
    let SegmentTail::Corrupt { next } = tail else { return Ok(()) };
    let message = format!(
        "corruption is followed by a complete batch at byte {next}, which opening the log for writing would \
         delete; salvage copies all complete batches to another directory, recover truncates the log here as a \
         broker does"
    );
    Err(Error::new(ErrorKind::InvalidFile(message)).at(segment.size()).with_path(segment.path()))
}

/// Refuses a log that ends before its start in the checkpoint of the log directory: a broker would delete it.
fn check_log_start(directory: &Location, end_offset: i64) -> Result<()> {
    let Some(partition) = parse_partition_directory(directory.absolute().name()) else { return Ok(()) };
    let starts = log_starts(&directory.absolute().directory());
    match starts.and_then(|starts| starts.offset(&partition.topic, partition.partition)) {
        Some(start) if start > end_offset => {
            let message = format!(
                "the log ends at offset {end_offset}, but log-start-offset-checkpoint says that it starts at {start}: a \
                 broker would delete what is written; correct the checkpoint first, or write from that offset on"
            );
            Err(Error::new(ErrorKind::InvalidFile(message)).with_path(directory))
        }
        _ => Ok(()),
    }
}

/// Writes the topic id, or compares it with the existing one.
fn check_topic_id(directory: &Path, options: &LogWriterOptions) -> Result<()> {
    let Some(topic_id) = options.topic_id else { return Ok(()) };
    let path = directory.join(PARTITION_METADATA);
    match PartitionMetadata::read(&path) {
        Ok(metadata) if metadata.topic_id == topic_id => Ok(()),
        Ok(metadata) => {
            let message = format!("the partition's topic id is {}, not {topic_id}", metadata.topic_id);
            Err(Error::argument(message).with_path(&path))
        }
        Err(error) if error.is_not_found() => PartitionMetadata::new(topic_id).write(&path),
        Err(error) => Err(error),
    }
}

/// Creates the directory and its missing parents, and syncs their names to disk.
pub(super) fn create_directory(directory: &Path) -> Result<()> {
    let create = || {
        let absolute = std::path::absolute(directory)?;
        let missing: Vec<_> = absolute.ancestors().take_while(|ancestor| !ancestor.is_dir()).collect();
        fs::create_dir_all(&absolute)?;
        missing.into_iter().filter_map(Path::parent).try_for_each(sync_directory)
    };
    create().map_err(|error: std::io::Error| Error::from(error).with_path(directory))
}

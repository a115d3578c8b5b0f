//! [`PartitionRestore`]: writes one partition from the batches of its source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::control::ControlRecord;
use crate::format::frame::batches;
use crate::format::header::{NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP};
use crate::format::{end_transaction_marker, set_partition_leader_epoch};
use crate::io::{Location, Progress};
use crate::log::PartitionLog;
use crate::log::checkpoint::LeaderEpochs;
use crate::log::producer::{ProducerEntry, ProducerSnapshot, ProducerStates};
use crate::repair::output::{BatchRefusal, OutputSettings, PartitionOutput, SegmentOutput};
use crate::restore::cut::{CutBounds, head};
use crate::restore::overlap::check_repeated;
use crate::restore::sources::PartitionSource;
use crate::restore::target::LOG_STARTS;
use crate::restore::{OpenTransaction, OpenTransactions, RestoreOptions, RestoredPartition, RestoredSegment};
use crate::rewrite::source::{RewriteSource, SourceSegment};
use crate::store::names::LEADER_EPOCHS;

/// A partition that is being written.
pub(super) struct PartitionRestore<'a> {
    options: &'a RestoreOptions,
    bounds: CutBounds,
    output: PartitionOutput,
    /// The source's snapshots of producers, by offset.
    snapshots: BTreeMap<i64, Location>,
    report: RestoredPartition,
    segment: Option<SegmentOutput>,
    current: CurrentFile,
    /// The last file of which a batch was written.
    before: Option<Location>,
    /// The offset after the last batch written, or the base offset of an empty segment.
    end_offset: Option<i64>,
    scratch: Scratch,
    /// A batch that is written in another form.
    edited: Vec<u8>,
}

/// The source file that is being read.
#[derive(Debug, Clone)]
struct CurrentFile {
    path: Location,
    base_offset: i64,
    size: u64,
    /// The offset after the files before it.
    end_before: Option<i64>,
    /// The offset after the last batch that was read from it.
    end_offset: Option<i64>,
    /// Whether a segment was begun for it.
    is_begun: bool,
}

impl CurrentFile {
    fn of(file: &SourceSegment, end_before: Option<i64>) -> Self {
        Self {
            path: file.path.clone(),
            base_offset: file.base_offset,
            size: file.size,
            end_before,
            end_offset: None,
            is_begun: false,
        }
    }
}

impl<'a> PartitionRestore<'a> {
    /// Begins to write a partition to an empty directory.
    ///
    /// # Errors
    /// I/O errors; [`ErrorKind::InvalidArgument`] for a source without segments.
    pub(super) fn new(
        one: &PartitionSource,
        source: &RewriteSource,
        target: &Path,
        options: &'a RestoreOptions,
    ) -> Result<Self> {
        let log = PartitionLog::open_with(&one.directory, &options.limits)?;
        let Some(first) = source.segments.first() else {
            return Err(Error::argument("the partition has no segment").with_path(&one.directory));
        };
        let mut report = RestoredPartition::new(one.partition.clone(), one.directory.to_path_buf(), log.start_offset());
        report.warnings = one.directory.warnings()?;
        report.source_topic_id = log.metadata()?.map(|metadata| metadata.topic_id);
        let epochs = match options.leader_epoch {
            Some(epoch) => {
                let mut epochs = LeaderEpochs::new();
                epochs.assign(epoch, first.base_offset)?;
                epochs
            }
            None => epochs_of(&one.directory, &mut report.warnings)?,
        };
        let settings = OutputSettings {
            directory: Some(target.to_path_buf()),
            write_log: true,
            index_interval_bytes: options.index_interval_bytes,
            limits: options.limits.clone(),
        };
        Ok(Self {
            options,
            bounds: CutBounds::of(options, &one.partition, log.start_offset()),
            output: PartitionOutput::new(settings, ProducerStates::new(), epochs),
            snapshots: log.snapshots().iter().cloned().collect(),
            report,
            segment: None,
            current: CurrentFile::of(first, None),
            before: None,
            end_offset: None,
            scratch: Scratch::new(),
            edited: Vec::new(),
        })
    }

    /// Writes the partition.
    ///
    /// # Errors
    /// Corruption in the source, with file and position; I/O errors.
    pub(super) fn run(mut self, source: &RewriteSource, progress: &mut Progress<'_>) -> Result<RestoredPartition> {
        for file in &source.segments {
            if self.report.cut.is_some() {
                break;
            }
            if let Some(cut) = self.bounds.excludes(file.base_offset) {
                self.report.cut = Some(cut).filter(|_| file.size > 0);
                break;
            }
            self.current = CurrentFile::of(file, self.end_offset);
            if let Some((before, end)) =
                self.before.as_ref().zip(self.end_offset).filter(|(_, end)| *end > file.base_offset)
            {
                let warning = check_repeated(before, &file.path, end, &self.options.limits)?;
                self.report.warnings.extend(warning);
            }
            let left = source.each_batch(file, progress, &mut |batch| self.pass(batch))?;
            self.end_file(left)?;
            if self.current.end_offset.is_some() && self.current.is_begun {
                self.before = Some(file.path.clone());
            }
        }
        self.finish()
    }

    /// Adds the next batch of the source. Returns whether to read the batches after it.
    fn pass(&mut self, batch: &Batch<'_>) -> Result<bool> {
        let first = batch.first_offset(&mut self.scratch, &self.options.limits)?;
        let last = batch.last_offset();
        if self.is_repeated(batch, first, last)? {
            self.current.end_offset = Some(batch.next_offset());
            return Ok(true);
        }
        if let Some(cut) = self.bounds.find(batch, &mut self.scratch, &self.options.limits)? {
            self.report.cut = Some(cut);
            let mut edited = std::mem::take(&mut self.edited);
            edited.clear();
            head(batch, cut.offset, &mut self.scratch, &self.options.limits, &mut edited)?;
            for part in batches(&edited) {
                self.write(&part?, first)?;
            }
            self.edited = edited;
            return Ok(false);
        }
        self.write(batch, first)?;
        self.current.end_offset = Some(batch.next_offset());
        Ok(true)
    }

    /// Whether the files before this one contain all offsets of a batch.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidValue`] for a batch that contains only some of them, or whose offsets fall.
    fn is_repeated(&self, batch: &Batch<'_>, first: i64, last: i64) -> Result<bool> {
        let CurrentFile { base_offset, end_before, end_offset, .. } = self.current;
        let rises = first >= end_offset.unwrap_or(base_offset) && last >= first;
        match end_before {
            Some(end) if rises && last < end => return Ok(true),
            _ if rises && end_before.is_none_or(|end| first >= end) => return Ok(false),
            _ => {}
        }
        let expected = "an offset after those of the batches before";
        let error = Error::new(ErrorKind::InvalidValue { value: first, expected });
        Err(error.at(batch.position()).in_batch(batch.header().stored_base_offset).in_field("base_offset"))
    }

    /// Writes a batch, with another leader epoch if the options set one.
    fn write(&mut self, batch: &Batch<'_>, first_offset: i64) -> Result<()> {
        if !self.current.is_begun {
            self.begin_file()?;
        }
        match self.options.leader_epoch {
            Some(epoch) if batch.magic() >= 2 => {
                let mut bytes = batch.bytes().to_vec();
                set_partition_leader_epoch(&mut bytes, epoch)?;
                self.append(&Batch::parse(&bytes, batch.position())?, first_offset)
            }
            _ => self.append(batch, first_offset),
        }
    }

    /// Begins the segment of the current file.
    fn begin_file(&mut self) -> Result<()> {
        self.current.is_begun = true;
        let base_offset = self.current.base_offset;
        let Some(end) = self.current.end_before else { return self.begin(base_offset) };
        self.report.add_gap(end, base_offset);
        self.begin(base_offset.max(end))
    }

    fn begin(&mut self, base_offset: i64) -> Result<()> {
        self.end_segment()?;
        self.adopt_producers(base_offset)?;
        // a log that starts with a snapshot knows producers whose records are deleted
        if !self.report.segments.is_empty() || !self.output.states.is_empty() {
            self.output.write_snapshot(base_offset)?;
        }
        self.segment = Some(self.output.begin_segment(base_offset, &self.current.path)?);
        self.report.segments.push(RestoredSegment {
            base_offset,
            end_offset: base_offset,
            path: self.current.path.to_path_buf(),
            source_bytes: self.current.size,
            bytes: 0,
        });
        self.end_offset = Some(base_offset);
        Ok(())
    }

    /// Replaces the state of the producers by that of the source's snapshot at an offset, which may contain producers
    /// that are not in the log.
    fn adopt_producers(&mut self, offset: i64) -> Result<()> {
        self.output.states.set_end_offset(offset);
        let Some(path) = self.snapshots.get(&offset) else { return Ok(()) };
        if path.len()? == 0 {
            return Ok(()); // a plugin's placeholder
        }
        match ProducerSnapshot::read(path) {
            Ok(snapshot) if self.contradicts(&snapshot) => {}
            Ok(snapshot) => self.output.states = ProducerStates::from_snapshot(&snapshot, offset),
            Err(error) if error.is_of_reading() => return Err(error),
            Err(error) => {
                let warning = format!("the producers at offset {offset} are computed from the log: {error}");
                self.report.warnings.push(warning);
            }
        }
        Ok(())
    }

    /// Whether a snapshot has other open transactions than the log before it, as after a gap with their markers. Then the
    /// log decides, as in `verify` and `rebuild_indexes`.
    fn contradicts(&self, snapshot: &ProducerSnapshot) -> bool {
        let open = |entries: &[ProducerEntry]| -> BTreeSet<(i64, i64)> {
            entries.iter().filter_map(|entry| Some((entry.producer_id, entry.current_txn_first_offset?))).collect()
        };
        !self.report.segments.is_empty() && open(&snapshot.entries) != open(&self.output.states.to_snapshot().entries)
    }

    fn append(&mut self, batch: &Batch<'_>, first_offset: i64) -> Result<()> {
        let Some(mut segment) = self.segment.take() else { return Ok(()) };
        let mut outcome = self.output.append(&mut segment, batch);
        if matches!(outcome, Err(BatchRefusal::Overflow)) && first_offset > segment.base_offset {
            self.segment = Some(segment);
            self.begin(first_offset)?;
            let Some(next) = self.segment.take() else { return Ok(()) };
            segment = next;
            outcome = self.output.append(&mut segment, batch);
        }
        self.segment = Some(segment);
        outcome.map_err(|refusal| refused(refusal, batch))?;
        self.count(batch);
        Ok(())
    }

    fn count(&mut self, batch: &Batch<'_>) {
        let is_first = self.report.segments.iter().all(|segment| segment.bytes == 0);
        if is_first && batch.delete_horizon_ms().is_none() {
            self.report.first_timestamp = known_time(batch.base_timestamp());
        }
        self.report.max_timestamp = self.report.max_timestamp.max(known_time(batch.max_timestamp()));
        let end_offset = batch.next_offset();
        if let (Some(counted), Some(segment)) = (self.report.segments.last_mut(), &self.segment) {
            counted.bytes = segment.len;
            counted.end_offset = end_offset;
        }
        self.end_offset = Some(end_offset);
    }

    fn end_file(&mut self, left: u64) -> Result<()> {
        let CurrentFile { base_offset, end_before, end_offset, is_begun, .. } = self.current;
        if let Some(end_before) = end_before {
            self.report.add_overlap(base_offset, end_offset.unwrap_or(base_offset), end_before);
        }
        if self.report.cut.is_none() {
            self.report.tail_bytes = self.report.tail_bytes.saturating_add(left);
            // an active segment without batches has the end offset of the log in its name
            if !is_begun && end_offset.is_none() && end_before.is_none_or(|end| base_offset >= end) {
                return self.begin_file();
            }
        }
        Ok(())
    }

    fn end_segment(&mut self) -> Result<()> {
        self.segment.take().map_or(Ok(()), |segment| self.output.finish_segment(segment))
    }

    fn finish(mut self) -> Result<RestoredPartition> {
        let start_offset = self.bounds.start_offset();
        check_start(&self.report, self.end_offset)?;
        if self.end_offset.is_none_or(|end| end < start_offset) {
            // an empty log has its start in the name of its segment
            self.begin(start_offset)?;
        }
        if let Some(end_offset) = self.end_offset {
            // the markers of aborted transactions have the latest epoch
            self.output.epochs.truncate_from_end(end_offset);
        }
        self.end_transactions()?;
        self.end_segment()?;
        let last_base = self.report.segments.last().map_or(0, |segment| segment.base_offset);
        let end_offset = self.end_offset.unwrap_or(last_base);
        if end_offset > last_base {
            if self.report.cut.is_none() && !self.report.open_transactions.iter().any(|open| open.aborted) {
                self.adopt_producers(end_offset)?;
            }
            if !self.options.keep_producers {
                self.output.states.forget_idle();
            }
            self.output.write_snapshot(end_offset)?;
        }
        self.output.epochs.truncate_from_end(end_offset); // of an empty log, too
        self.output.write_epochs()?;
        self.report.end_offset = end_offset;
        self.report.leader_epoch = self.output.epochs.latest().map(|latest| latest.epoch);
        Ok(self.report)
    }

    /// Reports the open transactions, and ends them if the options require it.
    fn end_transactions(&mut self) -> Result<()> {
        let mut open = self.output.states.to_snapshot().entries;
        open.sort_by_key(|entry| entry.current_txn_first_offset);
        for entry in open {
            let Some(first_offset) = entry.current_txn_first_offset else { continue };
            let aborted = self.options.open_transactions == OpenTransactions::Abort;
            if aborted {
                self.abort(&entry)?;
            }
            let ProducerEntry { producer_id, producer_epoch, .. } = entry;
            let transaction = OpenTransaction { producer_id, producer_epoch, first_offset, aborted };
            self.report.open_transactions.push(transaction);
        }
        Ok(())
    }

    /// Appends the abort marker of a producer.
    fn abort(&mut self, producer: &ProducerEntry) -> Result<()> {
        let offset = self.end_offset.ok_or_else(|| Error::bug("an open transaction in a log without batches"))?;
        let latest = self.output.epochs.latest().map(|latest| latest.epoch);
        let epoch = self.options.leader_epoch.or(latest).unwrap_or(NO_PARTITION_LEADER_EPOCH);
        let marker = ControlRecord::Abort { coordinator_epoch: producer.coordinator_epoch.max(0) };
        let timestamp = producer.timestamp.max(NO_TIMESTAMP);
        let (id, producer_epoch) = (producer.producer_id, producer.producer_epoch);
        let bytes = end_transaction_marker(offset, timestamp, epoch, id, producer_epoch, &marker)?;
        for batch in batches(&bytes) {
            self.append(&batch?, offset)?;
        }
        Ok(())
    }
}

/// Reads the leader epochs of a partition. Without a file, or with a malformed one, the batches contain them.
fn epochs_of(directory: &Location, warnings: &mut Vec<String>) -> Result<LeaderEpochs> {
    match LeaderEpochs::read(directory.join(LEADER_EPOCHS)) {
        Ok(epochs) => Ok(epochs),
        Err(error) if error.is_not_found() => Ok(LeaderEpochs::new()),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidFile(_)) => {
            warnings.push(format!("the leader epochs are computed from the log: {error}"));
            Ok(LeaderEpochs::new())
        }
        Err(error) => Err(error),
    }
}

/// Refuses a start offset after the end of the records, which a broker would delete, and readers would not see.
pub(super) fn check_start(report: &RestoredPartition, end_offset: Option<i64>) -> Result<()> {
    let start = report.start_offset;
    let Some(end) = end_offset.filter(|end| *end < start && report.byte_count() > 0) else { return Ok(()) };
    let name = report.partition.directory_name();
    let message = format!(
        "the log of {name} starts at offset {start} by this file, but ends at offset {end}, so that segments are missing: \
         remove its line and decrease the count in the second line, and all records are restored"
    );
    Err(Error::new(ErrorKind::InvalidFile(message)).with_path(&report.path.with_file_name(LOG_STARTS)))
}

/// A timestamp, unless it is Kafka's "no timestamp".
pub(super) fn known_time(timestamp: i64) -> Option<i64> {
    Some(timestamp).filter(|timestamp| *timestamp > NO_TIMESTAMP)
}

/// The error of a batch that a segment does not accept.
fn refused(refusal: BatchRefusal, batch: &Batch<'_>) -> Error {
    let expected = match refusal {
        BatchRefusal::Failed(error) | BatchRefusal::Marker(error) => return error,
        BatchRefusal::OffsetOrder => "an offset after those of the batches before",
        BatchRefusal::Overflow | BatchRefusal::BelowBase => {
            "an offset from the segment's base offset up to 2^31 - 1 after it"
        }
    };
    Error::new(ErrorKind::InvalidValue { value: batch.last_offset(), expected })
        .at(batch.position())
        .in_batch(batch.header().stored_base_offset)
        .in_field("base_offset")
}

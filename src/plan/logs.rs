//! The partitions and segments of a read, listed once.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::arrow::ScanSource;
use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::io::location::split_scheme;
use crate::io::waiting::map_waiting;
use crate::limits::Limits;
use crate::log::{PartitionLog, Segment};
use crate::objects::{StoreOptions, store_scheme};
use crate::plan::columns::PlanView;
use crate::plan::discover::{Discovery, Replicas, Selection, discover};
use crate::plan::options::{Pairs, ReadOptions};
use crate::plan::topics::PartitionName;
use crate::plural::some_of;
use crate::store::SegmentFile;
use crate::tiered::RemoteOptions;
use crate::tiered::aiven::EncryptionKeys;

/// How to open the paths of a read.
pub(crate) struct Stores {
    options: StoreOptions,
    /// Keys, and the topic with the states of segments.
    tiered: RemoteOptions,
    /// Where the earlier segments of the paths are.
    remote: Option<Location>,
}

impl Stores {
    /// Opens the stores of some paths with the options of a read.
    ///
    /// # Errors
    /// Options that have no effect on the paths, and a key that cannot be read.
    pub(crate) fn of(options: &ReadOptions, paths: &[String]) -> Result<Self> {
        let chosen = store_options(options, paths)?;
        let mut keys = EncryptionKeys::new();
        for (id, path) in &options.encryption_keys {
            keys.insert_file(id.as_str(), path).map_err(|error| {
                if error.is_not_found() {
                    not_found(format!("option encryptionKeys: nothing is at {path}"))
                } else {
                    error
                }
            })?;
        }
        let mut stores =
            Self { options: StoreOptions::new(chosen), tiered: RemoteOptions::new().keys(keys), remote: None };
        let (remote, metadata) = options.remote_paths()?;
        stores.remote = remote.map(|remote| parsed(&remote, &stores.options)).transpose()?;
        if let Some(metadata) = metadata {
            stores.tiered = stores.tiered.metadata(parsed(&metadata, &stores.options)?);
        }
        Ok(stores)
    }

    /// Opens a path or URL, with its earlier segments.
    pub(crate) fn locate(&self, path: &str) -> Result<Location> {
        match &self.remote {
            Some(remote) => parsed(path, &self.options)?.with_remote(remote.clone(), &self.tiered),
            None => Location::parse(path, &self.options)?.with_layout_of(&self.tiered),
        }
    }

    /// Whether the files of a path may be in another location.
    pub(crate) fn has_remote(&self) -> bool {
        self.remote.is_some()
    }
}

/// A path, or a URL with these options.
fn parsed(path: &str, options: &StoreOptions) -> Result<Location> {
    match split_scheme(path) {
        Some(_) => Location::parse(path, options),
        None => Ok(Location::local(path)),
    }
}

impl ReadOptions {
    /// The options of the store of the paths, and the files of private keys by their ids.
    ///
    /// # Errors
    /// Options that have no effect on the paths.
    pub fn storage(&self) -> Result<(Pairs, Pairs)> {
        Ok((store_options(self, &self.absolute_paths()?)?, self.encryption_keys.clone()))
    }
}

/// The options of the store of some paths: those of the read, or for S3 those of the session.
///
/// # Errors
/// Options without a URL, and options with paths of several kinds.
pub(crate) fn store_options(options: &ReadOptions, paths: &[String]) -> Result<Pairs> {
    let kind_of = |path: &String| match split_scheme(path) {
        Some((scheme, _)) => store_scheme(path).map_or_else(|| scheme.to_ascii_lowercase(), str::to_owned),
        None => String::new(),
    };
    let (remote, metadata) = options.remote_paths()?;
    let mut kinds: BTreeSet<String> = paths.iter().chain(&remote).chain(&metadata).map(kind_of).collect();
    if kinds.len() > 1 && (remote.is_some() || metadata.is_some()) {
        // the options are those of the URLs
        kinds.remove("");
    }
    let is_only = |kind: &str| !kinds.is_empty() && kinds.iter().all(|other| other == kind);
    if !options.storage.is_empty() && is_only("") {
        return Err(Error::argument(
            "kbat: the options storage.<name> have no effect on paths in a file system: remove them, or load URLs",
        ));
    }
    let chosen = if options.storage.is_empty() && is_only("s3") { &options.session_storage } else { &options.storage };
    if !chosen.is_empty() && kinds.len() > 1 {
        return Err(Error::argument(
            "kbat: the options storage.<name> are those of one store, and the paths are of several kinds: load them \
             apart, and combine the rows with union",
        ));
    }
    let plain = |name: &String| name.strip_prefix("secret.").unwrap_or(name).to_owned();
    Ok(chosen.iter().map(|(name, value)| (plain(name), value.clone())).collect())
}

/// An error about a file that does not exist.
pub(crate) fn not_found(message: impl std::fmt::Display) -> Error {
    Error::from(std::io::Error::new(std::io::ErrorKind::NotFound, format!("kbat: {message}")))
}

/// An error about storage options and keys, with their names as options of a read.
pub(crate) fn named_as_option(error: Error) -> Error {
    if !matches!(error.kind(), ErrorKind::InvalidArgument(_)) {
        return error;
    }
    let text = error.to_string();
    let renamed = text
        .replace("encryption_keys have no effect", "option encryptionKeys has no effect")
        .replace("no encryption keys were passed", "set the option encryptionKeys")
        .replace("remote_log_metadata has no effect", "option remoteLogMetadata has no effect")
        .replace("remote has no effect", "option remote has no effect")
        .replace("remote is a file", "option remote is a file");
    let renamed = match renamed.split_once("storage_options has no option \"") {
        Some((before, after)) => format!("{before}there is no option storage.{}", after.replacen('"', "", 1)),
        None => renamed,
    };
    if renamed == text {
        return error;
    }
    Error::argument(format!("kbat: {renamed}"))
}

/// The segments of one partition in one directory, in their order.
pub(crate) struct Log {
    pub(crate) partition: PartitionName,
    pub(crate) directory: Location,
    pub(crate) segments: Vec<SegmentFile>,
    /// Whether topic and partition are those of options, not of the directory's name.
    pub(crate) is_labelled: bool,
    limits: Limits,
    on_disk: OnceLock<PartitionLog>,
}

impl Log {
    /// Whether all segments are named after base offsets, so that offsets and times can be searched.
    pub(crate) fn is_named(&self) -> bool {
        self.segments.iter().all(|segment| segment.base_offset.is_some())
    }

    /// Whether its topic, or the kind of its files, is internal.
    fn is_internal(&self) -> bool {
        let PartitionName { topic, partition } = &self.partition;
        self.segments
            .first()
            .is_some_and(|first| ScanSource::file(first).or_topic_partition(topic.as_deref(), *partition).is_internal())
    }

    /// The directory, opened for searches.
    pub(crate) fn on_disk(&self) -> Result<&PartitionLog> {
        if let Some(log) = self.on_disk.get() {
            return Ok(log);
        }
        let log = PartitionLog::open_with(self.directory.clone(), &self.limits)?;
        Ok(self.on_disk.get_or_init(|| log))
    }

    pub(crate) fn start_offset(&self) -> Result<i64> {
        self.on_disk().map(PartitionLog::start_offset)
    }

    /// Opens one of the segments.
    pub(crate) fn open(&self, segment: &SegmentFile) -> Result<Segment> {
        Segment::open_with(segment.path.clone(), &self.limits)
    }

    /// The base offset of the segment after the one with this number.
    pub(crate) fn next_base(&self, number: usize) -> Option<i64> {
        self.segments.get(number.saturating_add(1)).and_then(|segment| segment.base_offset)
    }

    pub(crate) fn sources(&self) -> Vec<ScanSource> {
        ScanSource::files(&self.segments)
    }

    pub(crate) fn shown_directory(&self) -> std::path::Display<'_> {
        self.directory.path().display()
    }
}

/// Searches each log: of stores several at a time, because each search waits for requests.
///
/// # Errors
/// That of the first log whose search failed.
pub(crate) fn search_each<'l, R: Send>(
    logs: &'l [Log],
    search: impl Fn(&'l Log) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    map_waiting(logs, logs.iter().any(|log| !log.directory.is_local()), search)
}

/// Lists the partitions of a read with their segments: each file once, by base offset.
///
/// With `is_complete`, a topic or partition that is named but not found is an error. A stream does not warn about a
/// location without segments, because they may come later.
///
/// # Errors
/// A path that does not exist, an unknown scheme, a location with other contents, options of a store without effect, a
/// partition in two directories, an option `topic` or `partition` without effect.
pub(crate) fn list_logs(
    options: &ReadOptions,
    is_complete: bool,
    is_stream: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<Log>> {
    let (files, texts) = segment_files(options, is_complete)?;
    if !is_stream {
        warnings.extend(texts);
    }
    let mut logs: Vec<Log> = Vec::new();
    let mut numbers: HashMap<(PartitionName, PathBuf), usize> = HashMap::new();
    let mut resolved: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut names: HashSet<(usize, String)> = HashSet::new();
    for file in files {
        let directory = file.path.directory();
        let partition = partition_of(&file, options);
        let real = resolved.entry(directory.path().to_path_buf()).or_insert_with(|| directory.resolved()).clone();
        let number = *numbers.entry((partition.clone(), real)).or_insert_with(|| {
            logs.push(Log {
                partition,
                directory,
                segments: Vec::new(),
                is_labelled: false,
                limits: options.limits.clone(),
                on_disk: OnceLock::new(),
            });
            logs.len().saturating_sub(1)
        });
        if let Some(log) = logs.get_mut(number) {
            log.is_labelled |= file.partition.is_none();
            if names.insert((number, file.path.name().to_owned())) {
                log.segments.push(file);
            }
        }
    }
    for log in &mut logs {
        log.segments.sort_by_key(|segment| (segment.base_offset.is_none(), segment.base_offset));
    }
    if options.view == PlanView::Internal { internal_logs(logs, is_stream) } else { Ok(logs) }
}

/// The logs of internal topics. It is an error if there are only others, unless a stream waits for later ones.
fn internal_logs(logs: Vec<Log>, is_stream: bool) -> Result<Vec<Log>> {
    let (internal, others): (Vec<Log>, Vec<Log>) = logs.into_iter().partition(Log::is_internal);
    if internal.is_empty() && !others.is_empty() && !is_stream {
        let names: BTreeSet<String> = others.iter().map(|log| log.partition.to_string()).collect();
        return Err(Error::argument(format!(
            "kbat: view=internal reads internal topics such as __consumer_offsets, and none is there; found {}",
            some_of(names)
        )));
    }
    Ok(internal)
}

/// The files of the partitions that are read, and warnings.
fn segment_files(options: &ReadOptions, is_complete: bool) -> Result<(Vec<SegmentFile>, Vec<String>)> {
    let paths = options.absolute_paths()?;
    let stores = Stores::of(options, &paths)?;
    let find = |selection: Selection| found(&paths, &stores, &selection, options);
    let subscription = &options.subscription;
    let has_subscription = *subscription != crate::plan::topics::Subscription::All;
    let discovery = match find(Selection::default().replicas(options.replicas)) {
        Err(error) if has_subscription && matches!(error.kind(), ErrorKind::InvalidArgument(_)) => {
            let all = find(Selection::default().replicas(Replicas::Longest))?;
            let mut topics = BTreeSet::new();
            for file in all.locations.iter().flatten() {
                if subscription.includes(&partition_of(file, options))? {
                    topics.extend(file.partition.as_ref().map(|partition| partition.topic.clone()));
                }
            }
            check_replicas(&topics, &find)?;
            all
        }
        other => other?,
    };
    let mut warnings: Vec<String> = discovery.omissions.iter().map(|text| format!("kbat: {text}")).collect();
    warnings.extend(discovery.warnings.iter().map(|text| without_rows(text)));
    let files = discovery.into_segments();
    check_effect(&files, options)?;
    if is_complete {
        subscription.check(&files.iter().map(|file| partition_of(file, options)).collect())?;
    }
    let is_any = !files.is_empty();
    let mut chosen = Vec::new();
    for file in files {
        if subscription.includes(&partition_of(&file, options))? {
            chosen.push(file);
        }
    }
    if is_any && chosen.is_empty() {
        warnings.push(without_rows(&format!("no topic at {} matches subscribePattern", paths.join(", "))));
    }
    Ok((chosen, warnings))
}

/// The warning about a location without rows.
fn without_rows(text: &str) -> String {
    format!("kbat: {text}; the read has no rows of it")
}

fn found(paths: &[String], stores: &Stores, selection: &Selection, options: &ReadOptions) -> Result<Discovery> {
    let find = || {
        let locations = paths.iter().map(|path| stores.locate(path)).collect::<Result<Vec<_>>>()?;
        Location::check_remote_effect(&locations)?;
        discover(&locations, selection)
    };
    find().map_err(|error| {
        if !matches!(error.kind(), ErrorKind::Io(_)) {
            return named_as_option(error);
        }
        let error = if error.is_not_found() { nothing_there(&error) } else { error };
        let is_stored = paths.iter().any(|path| split_scheme(path).is_some());
        if is_stored && store_options(options, paths).is_ok_and(|chosen| chosen.is_empty()) {
            return error.with_note(
                "no option storage.<name> is set, so credentials are those of the environment; kbat.spark.read uses \
                 the session's spark.hadoop.fs.s3a.* settings, and format(\"kbat\") those that the session had at \
                 kbat.spark.register(spark)",
            );
        }
        error
    })
}

/// An error about a path that does not exist, with the possible forms of a path.
fn nothing_there(error: &Error) -> Error {
    let what = match (error.kind(), error.path()) {
        // the system says no more, and a store may
        (ErrorKind::Io(io), Some(path)) if io.raw_os_error().is_some() => format!("nothing is at {}", path.display()),
        _ => error.to_string().trim_start_matches("kbat: ").to_owned(),
    };
    not_found(format!("{what}; a path is a .log file, a partition directory, a log directory or a glob of them"))
}

/// Refuses a partition of these topics in two directories; other topics do not matter.
fn check_replicas(topics: &BTreeSet<String>, find: &dyn Fn(Selection) -> Result<Discovery>) -> Result<()> {
    if topics.is_empty() {
        return Ok(());
    }
    let topics: Vec<String> = topics.iter().map(|topic| glob::Pattern::escape(topic)).collect();
    find(Selection::default().topics(&topics)?.that_may_be_missing()).map(drop)
}

fn partition_of(file: &SegmentFile, options: &ReadOptions) -> PartitionName {
    match &file.partition {
        Some(partition) => PartitionName::new(&partition.topic, partition.partition),
        None => PartitionName { topic: options.topic.clone(), partition: options.partition },
    }
}

/// Refuses the options `topic` and `partition` if every file has a topic and a partition.
fn check_effect(files: &[SegmentFile], options: &ReadOptions) -> Result<()> {
    let Some(first) = files.first().and_then(|file| file.partition.as_ref()) else { return Ok(()) };
    if files.iter().any(|file| file.partition.is_none()) {
        return Ok(());
    }
    let (name, instead) = match (&options.topic, options.partition) {
        (Some(topic), _) => ("topic", format!("subscribe={topic} to read one topic")),
        (None, Some(partition)) => {
            ("partition", format!("assign={{\"{}\": [{partition}]}} to read one partition", first.topic))
        }
        (None, None) => return Ok(()),
    };
    Err(Error::argument(format!(
        "kbat: option {name} has no effect: it sets the {name} of files outside a <topic>-<partition> directory, and \
         every file found is in one; use {instead}"
    )))
}

//! The native functions of the Java classes `kbat.spark.Native` and its companions (feature `jvm`). They only translate
//! arguments, results and errors.
//!
//! A handle is a number, never an address: one that is closed, or was never opened, is an error.

#![allow(unsafe_code, reason = "the JVM finds functions by their unmangled names")]
#![allow(clippy::needless_pass_by_value, reason = "the JVM passes arguments by value")]

mod decode;
mod encode;
mod functions;
mod nodes;
mod parquet;
mod sink;
mod stream;
mod unsafe_rows;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jni::errors::ErrorPolicy;
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray, JString};
use jni::strings::JNIString;
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};

use crate::arrow::ScanStats;
use crate::error::{Error, ErrorKind};
use crate::num::u64_of;
use crate::plan::{
    Condition, GroupColumn, Pairs, Read, ReadOptions, ReadTask, RowFilter, TaskReader, Total, WantedColumn,
    columns_of_schema,
};

type Strings<'l> = JObjectArray<'l, JString<'l>>;
type StringLists<'l> = JObjectArray<'l, Strings<'l>>;

/// An error of a native function.
enum Failure {
    Kbat(Error),
    /// An error of the JVM, mostly an exception that is pending.
    Jni(jni::errors::Error),
    Closed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Kbat(error)
    }
}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Self {
        Self::Jni(error)
    }
}

type JvmResult<T> = std::result::Result<T, Failure>;

/// Errors and panics as Java exceptions.
struct Throw;

impl<T: Default> ErrorPolicy<T, Failure> for Throw {
    type Captures<'l: 'm, 'm> = ();

    fn on_error<'l: 'm, 'm>(env: &mut Env<'l>, (): &mut (), failure: Failure) -> jni::errors::Result<T> {
        if env.exception_check() {
            return Ok(T::default());
        }
        let (class, message) = match failure {
            Failure::Kbat(error) => (class_of(&error), with_prefix(&error)),
            Failure::Jni(error) => ("java/lang/IllegalStateException", format!("kbat: {error}")),
            Failure::Closed => ("java/lang/IllegalStateException", "kbat: the handle is closed".to_owned()),
        };
        throw(env, class, &message);
        Ok(T::default())
    }

    fn on_panic<'l: 'm, 'm>(
        env: &mut Env<'l>,
        (): &mut (),
        payload: Box<dyn std::any::Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        throw(env, "java/lang/IllegalStateException", &format!("kbat: internal error, please report it: {text}"));
        Ok(T::default())
    }
}

/// Leaves an exception pending, which the JVM throws when the native function returns.
fn throw(env: &mut Env<'_>, class: &str, message: &str) {
    // the result says that an exception is pending
    let _ = env.throw_new(JNIString::from(class), JNIString::from(message));
}

fn class_of(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::InvalidArgument(_) => "java/lang/IllegalArgumentException",
        ErrorKind::Io(_) if error.is_not_found() => "java/io/FileNotFoundException",
        ErrorKind::Other(_) => "java/lang/IllegalStateException",
        _ => "java/io/IOException",
    }
}

fn with_prefix(error: &Error) -> String {
    let text = error.to_string();
    if text.starts_with("kbat: ") || text.starts_with("kbat_") { text } else { format!("kbat: {text}") }
}

/// Runs a native function, whose errors and panics become exceptions.
fn call<'l, T: Default>(mut env: EnvUnowned<'l>, run: impl FnOnce(&mut Env<'l>) -> JvmResult<T>) -> T {
    env.with_env(run).resolve::<Throw>()
}

thread_local! {
    static WARNINGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn warn(warnings: Vec<String>) {
    WARNINGS.with_borrow_mut(|all| all.extend(warnings));
}

/// Objects that Java refers to by numbers.
struct Handles<T>(LazyLock<Mutex<HashMap<jlong, Arc<Mutex<T>>>>>);

static NEXT_HANDLE: AtomicI64 = AtomicI64::new(1);

impl<T> Handles<T> {
    const fn new() -> Self {
        Self(LazyLock::new(Mutex::default))
    }

    fn open(&self, object: T) -> jlong {
        let handle = NEXT_HANDLE.fetch_add(1, Ordering::Relaxed);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(handle, Arc::new(Mutex::new(object)));
        handle
    }

    fn with<R>(&self, handle: jlong, run: impl FnOnce(&mut T) -> JvmResult<R>) -> JvmResult<R> {
        let object = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned();
        let object = object.ok_or(Failure::Closed)?;
        let mut object = object.lock().unwrap_or_else(PoisonError::into_inner);
        run(&mut object)
    }

    fn close(&self, handle: jlong) {
        let object = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle);
        drop(object); // after the lock is released
    }
}

static TASKS: Handles<Task> = Handles::new();

/// A task, and the Arrow batch that Java reads.
struct Task {
    reader: TaskReader,
    batch: Option<arrow_array::RecordBatch>,
}

fn texts(env: &mut Env<'_>, array: &Strings<'_>) -> JvmResult<Vec<String>> {
    let mut texts = Vec::new();
    for place in 0..array.len(env)? {
        let text = array.get_element(env, place)?;
        texts.push(text.try_to_string(env)?);
        env.delete_local_ref(text);
    }
    Ok(texts)
}

/// Names and values, which follow each other.
fn pairs(env: &mut Env<'_>, array: &Strings<'_>) -> JvmResult<Pairs> {
    let texts = texts(env, array)?;
    Ok(texts.chunks_exact(2).filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone()))).collect())
}

fn strings<'l>(env: &mut Env<'l>, texts: &[String]) -> JvmResult<Strings<'l>> {
    let array = Strings::new(env, texts.len(), JString::null())?;
    for (place, text) in texts.iter().enumerate() {
        let text = env.new_string(text)?;
        array.set_element(env, place, &text)?;
        env.delete_local_ref(text);
    }
    Ok(array)
}

fn tasks_of<'l>(env: &mut Env<'l>, tasks: &[ReadTask]) -> JvmResult<JObjectArray<'l, JByteArray<'l>>> {
    byte_arrays(env, &tasks.iter().map(ReadTask::to_bytes).collect::<crate::error::Result<Vec<_>>>()?)
}

fn byte_arrays<'l>(env: &mut Env<'l>, all: &[Vec<u8>]) -> JvmResult<JObjectArray<'l, JByteArray<'l>>> {
    let array = JObjectArray::<JByteArray<'l>>::new(env, all.len(), JByteArray::null())?;
    for (place, bytes) in all.iter().enumerate() {
        let bytes = env.byte_array_from_slice(bytes)?;
        array.set_element(env, place, &bytes)?;
        env.delete_local_ref(bytes);
    }
    Ok(array)
}

/// The filters of a query; those that are not known exclude nothing.
fn filter_of(env: &mut Env<'_>, filters: &StringLists<'_>, options: &ReadOptions) -> JvmResult<RowFilter> {
    let mut conditions = Vec::new();
    for place in 0..filters.len(env)? {
        let parts = filters.get_element(env, place)?;
        let parts = texts(env, &parts)?;
        if let Some(condition) = Condition::parse(&parts) {
            conditions.push(condition.of_column(options));
        }
    }
    Ok(RowFilter::new(conditions))
}

fn read_of(
    env: &mut Env<'_>,
    options: &Strings<'_>,
    session: &Strings<'_>,
    columns: &[String],
    filters: &StringLists<'_>,
) -> JvmResult<Read> {
    let (options, session) = (pairs(env, options)?, pairs(env, session)?);
    let read = Read::new(&options, &session, columns)?;
    let filter = filter_of(env, filters, read.options())?;
    Ok(read.filter(filter))
}

fn wanted_columns(texts: &[String]) -> Vec<WantedColumn> {
    let column = |parts: &[String]| match parts {
        [name, data_type, is_nullable] => {
            Some(WantedColumn { name: name.clone(), data_type: data_type.clone(), is_nullable: is_nullable == "true" })
        }
        _ => None,
    };
    texts.chunks_exact(3).filter_map(column).collect()
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_version<'l>(env: EnvUnowned<'l>, _: JClass<'l>) -> JString<'l> {
    call(env, |env| Ok(env.new_string(env!("CARGO_PKG_VERSION"))?))
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_columns<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    options: Strings<'l>,
    session: Strings<'l>,
) -> Strings<'l> {
    call(env, |env| {
        let options = ReadOptions::parse(&pairs(env, &options)?, &pairs(env, &session)?)?;
        let columns = options.schema()?;
        let parts = columns.into_iter().flat_map(|(name, column)| [name, column.data_type.into(), column.text.into()]);
        strings(env, &parts.collect::<Vec<_>>())
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_check<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    options: Strings<'l>,
    session: Strings<'l>,
    columns: Strings<'l>,
    is_stream: jboolean,
) {
    call(env, |env| {
        let options = ReadOptions::parse(&pairs(env, &options)?, &pairs(env, &session)?)?;
        if is_stream {
            options.check_stream()?;
        } else {
            options.check_batch()?;
        }
        columns_of_schema(&wanted_columns(&texts(env, &columns)?), &options)?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_plan<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    options: Strings<'l>,
    session: Strings<'l>,
    columns: Strings<'l>,
    filters: StringLists<'l>,
    limit: jint,
    totals: Strings<'l>,
    groups: Strings<'l>,
    is_apart: jboolean,
) -> JObjectArray<'l, JByteArray<'l>> {
    call(env, |env| {
        let columns = texts(env, &columns)?;
        let totals = texts(env, &totals)?.iter().filter_map(|name| Total::named(name)).collect();
        let groups = texts(env, &groups)?.iter().filter_map(|name| GroupColumn::named(name)).collect();
        let read = read_of(env, &options, &session, &columns, &filters)?;
        let read = read.limit(u64::try_from(limit).ok()).apart(is_apart).totals(totals, groups)?;
        let mut warnings = Vec::new();
        let tasks = read.plan(true, &mut warnings);
        warn(warnings);
        tasks_of(env, &tasks?)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_hasTotals<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    options: Strings<'l>,
    session: Strings<'l>,
) -> jboolean {
    call(env, |env| {
        let options = ReadOptions::parse(&pairs(env, &options)?, &pairs(env, &session)?)?;
        Ok(options.has_totals())
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_statistics<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    options: Strings<'l>,
    session: Strings<'l>,
    filters: StringLists<'l>,
) -> JLongArray<'l> {
    call(env, |env| {
        let (segments, bytes) = read_of(env, &options, &session, &[], &filters)?.statistics()?;
        let [bytes, segments] = [bytes, u64_of(segments)].map(|number| i64::try_from(number).unwrap_or(i64::MAX));
        longs(env, &[bytes, segments, -1])
    })
}

fn longs<'l>(env: &mut Env<'l>, numbers: &[i64]) -> JvmResult<JLongArray<'l>> {
    let array = JLongArray::new(env, numbers.len())?;
    array.set_region(env, 0, numbers)?;
    Ok(array)
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_takeWarnings<'l>(env: EnvUnowned<'l>, _: JClass<'l>) -> Strings<'l> {
    call(env, |env| strings(env, &WARNINGS.take()))
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_partitionOf<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    task: JByteArray<'l>,
) -> Strings<'l> {
    call(env, |env| {
        let task = ReadTask::from_bytes(&env.convert_byte_array(&task)?)?;
        let names = task.partition().map(|(topic, partition)| vec![topic.to_owned(), partition.to_string()]);
        strings(env, &names.unwrap_or_default())
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_openTask<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    task: JByteArray<'l>,
) -> jlong {
    call(env, |env| {
        let task = ReadTask::from_bytes(&env.convert_byte_array(&task)?)?;
        Ok(TASKS.open(Task { reader: TaskReader::new(task)?, batch: None }))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_next<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    task: jlong,
    nodes: JLongArray<'l>,
) -> jint {
    call(env, |env| {
        TASKS.with(task, |task| {
            task.batch = None; // its memory is free for the next one
            let next = task.reader.next();
            warn(task.reader.take_warnings());
            let Some(batch) = next.transpose()? else { return Ok(-1) };
            nodes.set_region(env, 0, &nodes::nodes_of(&batch)?)?;
            let rows = i32::try_from(batch.num_rows()).unwrap_or(i32::MAX);
            task.batch = Some(batch);
            Ok(rows)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_counts<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    task: jlong,
) -> JLongArray<'l> {
    call(env, |env| {
        let stats = TASKS.with(task, |task| Ok(task.reader.stats()))?;
        longs(env, &counts_of(stats))
    })
}

/// The counts of a task, in the order of Java's metrics.
fn counts_of(stats: ScanStats) -> [i64; 6] {
    let ScanStats { batches, records, bytes_read, batches_skipped, bytes_lost, offsets_lost, .. } = stats;
    let counts = [batches, records, bytes_read, batches_skipped, bytes_lost, offsets_lost];
    counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_closeTask<'l>(env: EnvUnowned<'l>, _: JClass<'l>, task: jlong) {
    call(env, |_| {
        TASKS.close(task);
        Ok(())
    });
}

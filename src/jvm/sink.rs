//! The native functions of `kbat.spark.NativeSink`: writes of rows.

use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray, JString};
use jni::sys::{jboolean, jint, jlong};

use super::unsafe_rows::{RecordType, batch_of_rows};
use super::{Handles, Strings, call, longs, pairs, warn};
use crate::error::Error;
use crate::num::u64_of;
use crate::sink::{TaskWriter, WriteCounts, WriteJob, Written};

/// The columns that a write reads.
const FIELDS: [&str; 6] = ["topic", "partition", "key", "value", "headers", "timestamp"];

static WRITERS: Handles<Writer> = Handles::new();

/// The writer of a task, and the fields of its rows.
struct Writer {
    task: Option<TaskWriter>,
    fields: RecordType,
}

fn finished() -> Error {
    Error::argument("kbat: the task is finished")
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeSink_check<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    options: Strings<'l>,
    columns: Strings<'l>,
) {
    call(env, |env| {
        let (options, columns) = (pairs(env, &options)?, pairs(env, &columns)?);
        warn(WriteJob::check(&options, &columns)?.into_iter().collect());
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeSink_start<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    options: Strings<'l>,
    columns: Strings<'l>,
    overwrite: jboolean,
) -> JByteArray<'l> {
    call(env, |env| {
        let (options, columns) = (pairs(env, &options)?, pairs(env, &columns)?);
        let job = WriteJob::start(&options, &columns, overwrite)?;
        Ok(env.byte_array_from_slice(&job.to_bytes()?)?)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeSink_commit<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    job: JByteArray<'l>,
    written: JObjectArray<'l, JByteArray<'l>>,
    query: JString<'l>,
    epoch: jlong,
) {
    call(env, |env| {
        let job = WriteJob::from_bytes(&env.convert_byte_array(&job)?)?;
        let mut tasks = Vec::new();
        for place in 0..written.len(env)? {
            let bytes = written.get_element(env, place)?;
            tasks.push(Written::from_bytes(&env.convert_byte_array(&bytes)?)?);
            env.delete_local_ref(bytes);
        }
        if query.is_null() {
            job.commit(&tasks)?;
        } else {
            job.commit_epoch(&tasks, &query.try_to_string(env)?, epoch)?;
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeSink_abort<'l>(env: EnvUnowned<'l>, _: JClass<'l>, job: JByteArray<'l>) {
    call(env, |env| {
        WriteJob::from_bytes(&env.convert_byte_array(&job)?)?.abort()?;
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeSink_open<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    job: JByteArray<'l>,
    schema: JString<'l>,
    number: jint,
    attempt: jlong,
) -> jlong {
    call(env, |env| {
        let job = WriteJob::from_bytes(&env.convert_byte_array(&job)?)?;
        let fields = RecordType::of_json(&schema.try_to_string(env)?, &FIELDS)?;
        let task = TaskWriter::new(&job, number.cast_unsigned(), attempt.cast_unsigned())?;
        Ok(WRITERS.open(Writer { task: Some(task), fields }))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeSink_write<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
    rows: JByteArray<'l>,
    length: jint,
) -> jlong {
    call(env, |env| {
        let bytes = env.convert_byte_array(&rows)?;
        let length = usize::try_from(length).unwrap_or_default();
        let bytes = bytes.get(..length).unwrap_or(&bytes);
        WRITERS.with(handle, |writer| {
            let rows = batch_of_rows(bytes, &writer.fields)?;
            let task = writer.task.as_mut().ok_or_else(finished)?;
            task.write(&rows)?;
            Ok(i64::try_from(u64_of(task.waiting_len())).unwrap_or(i64::MAX))
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeSink_counts<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    written: JByteArray<'l>,
) -> JLongArray<'l> {
    call(env, |env| {
        let written = Written::from_bytes(&env.convert_byte_array(&written)?)?;
        let WriteCounts { batches, records, bytes } = written.counts();
        longs(env, &[batches, records, bytes].map(|count| i64::try_from(count).unwrap_or(i64::MAX)))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeSink_finish<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
) -> JByteArray<'l> {
    call(env, |env| {
        let task = WRITERS.with(handle, |writer| Ok(writer.task.take().ok_or_else(finished)?))?;
        Ok(env.byte_array_from_slice(&task.finish()?.to_bytes()?)?)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeSink_close<'l>(env: EnvUnowned<'l>, _: JClass<'l>, handle: jlong) {
    call(env, |_| {
        WRITERS.close(handle);
        Ok(())
    });
}

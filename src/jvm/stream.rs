//! The native functions of `kbat.spark.Native` for streams.

use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass, JObjectArray, JString};
use jni::sys::{jboolean, jlong};

use super::{Handles, JvmResult, Strings, call, pairs, tasks_of, texts, warn};
use crate::plan::{Read, ReadLimit, Stream};

static STREAMS: Handles<Stream> = Handles::new();

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_openStream<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    options: Strings<'l>,
    session: Strings<'l>,
    columns: Strings<'l>,
) -> jlong {
    call(env, |env| {
        let columns = texts(env, &columns)?;
        let read = Read::new(&pairs(env, &options)?, &pairs(env, &session)?, &columns)?;
        Ok(STREAMS.open(Stream::new(read)?))
    })
}

/// Runs a function of a stream, and keeps its warnings.
fn stream<R>(handle: jlong, run: impl FnOnce(&mut Stream) -> crate::error::Result<R>) -> JvmResult<R> {
    STREAMS.with(handle, |stream| {
        let result = run(stream);
        warn(stream.take_warnings());
        Ok(result?)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_initialOffset<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
) -> JString<'l> {
    call(env, |env| Ok(env.new_string(stream(handle, Stream::initial_offset)?)?))
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_latestOffset<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
    start: JString<'l>,
    is_limited: jboolean,
) -> JString<'l> {
    call(env, |env| {
        let start = if start.is_null() { None } else { Some(start.try_to_string(env)?) };
        let limit = if is_limited { ReadLimit::OfOptions } else { ReadLimit::AllAvailable };
        let latest = stream(handle, |stream| stream.latest_offset(start.as_deref(), limit))?;
        Ok(env.new_string(latest)?)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_reportLatestOffset<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
) -> JString<'l> {
    call(env, |env| match stream(handle, |stream| Ok(stream.report_latest_offset()))? {
        Some(latest) => Ok(env.new_string(latest)?),
        None => Ok(JString::null()),
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_prepareForTriggerAvailableNow<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
) {
    call(env, |_| stream(handle, Stream::prepare_for_available_now));
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_planMicroBatch<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
    start: JString<'l>,
    end: JString<'l>,
) -> JObjectArray<'l, JByteArray<'l>> {
    call(env, |env| {
        let (start, end) = (start.try_to_string(env)?, end.try_to_string(env)?);
        let tasks = stream(handle, |stream| stream.plan(&start, &end))?;
        tasks_of(env, &tasks)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_Native_closeStream<'l>(env: EnvUnowned<'l>, _: JClass<'l>, handle: jlong) {
    call(env, |_| {
        STREAMS.close(handle);
        Ok(())
    });
}

//! The native functions of `kbat.spark.NativeRows`: record batches in the values of a column, and Spark's rows.

use std::cell::RefCell;
use std::rc::Rc;

use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray, JString};
use jni::sys::jlong;

use super::decode::{RowDecoder, points_of};
use super::unsafe_rows::{RecordType, batch_of_array};
use super::{call, longs, strings};
use crate::arrow::{EncodeOptions, EncodedBatches};
use crate::error::Result;
use crate::format::header::NO_TIMESTAMP;

/// The fields of a record that an encoder reads.
pub(super) const FIELDS: [&str; 5] = ["key", "value", "timestamp", "headers", "offset"];

/// What the last text means: all calls of a task have the same.
struct LastParsed<T>(RefCell<Option<(String, Rc<T>)>>);

impl<T> LastParsed<T> {
    const fn new() -> Self {
        Self(RefCell::new(None))
    }

    fn of(&self, text: &str, parse: impl FnOnce(&str) -> Result<T>) -> Result<Rc<T>> {
        let mut last = self.0.borrow_mut();
        if let Some((known, parsed)) = &*last
            && known == text
        {
            return Ok(Rc::clone(parsed));
        }
        let parsed = Rc::new(parse(text)?);
        *last = Some((text.to_owned(), Rc::clone(&parsed)));
        Ok(parsed)
    }
}

thread_local! {
    static DECODER: LastParsed<RowDecoder> = const { LastParsed::new() };
    static RECORDS: LastParsed<RecordType> = const { LastParsed::new() };
}

fn decoder(settings: &str) -> Result<Rc<RowDecoder>> {
    DECODER.with(|last| last.of(settings, RowDecoder::parse))
}

fn encode(records: &[u8], fields: &str, compression: &str) -> Result<Vec<u8>> {
    let fields = RECORDS.with(|last| last.of(fields, |json| RecordType::of_json(json, &FIELDS)))?;
    let rows = batch_of_array(records, &fields)?;
    let options =
        EncodeOptions { compression: compression.parse()?, timestamp: Some(NO_TIMESTAMP), ..EncodeOptions::default() };
    let mut bytes = Vec::new();
    for batch in EncodedBatches::new(&rows.schema(), [Ok(rows)], options)? {
        bytes.extend_from_slice(&batch?.bytes);
    }
    Ok(bytes)
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeRows_columns<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    settings: JString<'l>,
) -> JObjectArray<'l, JString<'l>> {
    call(env, |env| {
        let decoder = decoder(&settings.try_to_string(env)?)?;
        strings(env, &decoder.schema())
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeRows_decode<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    bytes: JByteArray<'l>,
    position: jlong,
    settings: JString<'l>,
) -> JByteArray<'l> {
    call(env, |env| {
        let decoder = decoder(&settings.try_to_string(env)?)?;
        let rows = decoder.decode(env.convert_byte_array(&bytes)?, position)?;
        Ok(env.byte_array_from_slice(&rows)?)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeRows_points<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    bytes: JByteArray<'l>,
    max_len: jlong,
) -> JLongArray<'l> {
    call(env, |env| {
        let max_len = u64::try_from(max_len).unwrap_or_default();
        let points = points_of(&env.convert_byte_array(&bytes)?, max_len);
        let points = points.into_iter().map(|point| i64::try_from(point).unwrap_or(i64::MAX));
        longs(env, &points.collect::<Vec<_>>())
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeRows_encode<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    records: JByteArray<'l>,
    fields: JString<'l>,
    compression: JString<'l>,
) -> JByteArray<'l> {
    call(env, |env| {
        let (fields, compression) = (fields.try_to_string(env)?, compression.try_to_string(env)?);
        let batches = encode(&env.convert_byte_array(&records)?, &fields, &compression)?;
        Ok(env.byte_array_from_slice(&batches)?)
    })
}

//! The native functions of `kbat.spark.NativeEncoder`: the rows of a task as record batches.

use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass, JObjectArray, JString};
use jni::sys::{jboolean, jlong};

use super::functions::FIELDS;
use super::unsafe_rows::{Cell, LogKey, RecordType, batches_of_runs, row_of};
use super::{Handles, byte_arrays, call};
use crate::arrow::{EncodeOptions, EncodedBatch, RowPacker};
use crate::error::{Error, Result};

static ENCODERS: Handles<LogEncoder> = Handles::new();

/// Encodes rows whose first field is a struct that identifies their log. A log ends where the struct changes.
struct LogEncoder {
    fields: RecordType,
    key: LogKey,
    options: EncodeOptions,
    /// The struct of the current log, and its encoder.
    log: Option<(Vec<u8>, RowPacker)>,
}

impl LogEncoder {
    fn parse(fields: &str, settings: &str) -> Result<Self> {
        let options = serde_json::from_str(settings).map_err(Error::other)?;
        Ok(Self { fields: RecordType::of_json(fields, &FIELDS)?, key: LogKey::of_first(fields)?, options, log: None })
    }

    /// The record batches that these rows complete, each as a row.
    fn encode(&mut self, rows: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut made = Vec::new();
        for (key, records) in batches_of_runs(rows, &self.fields)? {
            if self.log.as_ref().is_none_or(|(current, _)| current != key) {
                made.extend(self.finish()?);
                self.log = Some((key.to_vec(), RowPacker::new(&records.schema(), self.options)?));
            }
            let Some((key, packer)) = &mut self.log else { continue };
            packer.push(records);
            while let Some(batch) = packer.next_full().map_err(|error| in_log(&self.key, key, error))? {
                made.push(row_of_batch(key, &batch));
            }
        }
        Ok(made)
    }

    /// The last record batch of the current log, which ends.
    fn finish(&mut self) -> Result<Option<Vec<u8>>> {
        let Some((key, mut packer)) = self.log.take() else { return Ok(None) };
        let batch = packer.finish().map_err(|error| in_log(&self.key, &key, error))?;
        Ok(batch.map(|batch| row_of_batch(&key, &batch)))
    }
}

/// Adds the name of the log to an error.
fn in_log(logs: &LogKey, key: &[u8], error: Error) -> Error {
    match logs.name(key) {
        Ok(name) if !name.is_empty() => Error::argument(format!("{name}: {error}")),
        _ => error,
    }
}

/// The columns of Spark's result, of which the first identifies the log.
fn row_of_batch(key: &[u8], batch: &EncodedBatch) -> Vec<u8> {
    row_of(&[
        Cell::Bytes(key),
        Cell::Long(batch.base_offset),
        Cell::Long(batch.last_offset),
        Cell::Int(i32::try_from(batch.record_count).unwrap_or(i32::MAX)),
        Cell::Bytes(&batch.bytes),
    ])
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeEncoder_open<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    fields: JString<'l>,
    settings: JString<'l>,
) -> jlong {
    call(env, |env| {
        let encoder = LogEncoder::parse(&fields.try_to_string(env)?, &settings.try_to_string(env)?)?;
        Ok(ENCODERS.open(encoder))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeEncoder_encode<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
    rows: JByteArray<'l>,
    is_last: jboolean,
) -> JObjectArray<'l, JByteArray<'l>> {
    call(env, |env| {
        let bytes = env.convert_byte_array(&rows)?;
        let made = ENCODERS.with(handle, |encoder| {
            let mut made = encoder.encode(&bytes)?;
            if is_last {
                made.extend(encoder.finish()?);
            }
            Ok(made)
        })?;
        byte_arrays(env, &made)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeEncoder_close<'l>(env: EnvUnowned<'l>, _: JClass<'l>, handle: jlong) {
    call(env, |_| {
        ENCODERS.close(handle);
        Ok(())
    });
}

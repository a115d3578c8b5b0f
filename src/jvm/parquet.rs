//! The native functions of `kbat.spark.NativeParquet`: Parquet files of a task's rows, which stay in Rust.

use std::path::PathBuf;

use jni::EnvUnowned;
use jni::objects::{JByteArray, JClass, JLongArray, JString};
use jni::sys::{jboolean, jlong};
use serde::Deserialize;

use super::{Handles, Strings, call, counts_of, longs, strings, warn};
use crate::error::{Error, Result};
use crate::parquet::{ParquetOptions, ParquetWriter};
use crate::plan::{ReadTask, TaskReader};

static FILES: Handles<TaskFiles> = Handles::new();

/// The rows of a task, and the files that they are written to.
struct TaskFiles {
    reader: TaskReader,
    writer: Option<ParquetWriter>,
}

/// How the files of a job are written.
#[derive(Deserialize)]
struct ParquetSettings {
    partition_by: Vec<String>,
    compression: String,
    /// Names of the columns, without those that name directories.
    names: Vec<String>,
}

impl ParquetSettings {
    fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::argument(format!("kbat: settings of Parquet files: {error}")))
    }

    /// Options of the files of a task, whose names begin with `stem`.
    fn options(self, stem: String) -> Result<ParquetOptions> {
        Ok(ParquetOptions {
            compression: self.compression.parse()?,
            partition_by: self.partition_by.iter().map(|key| key.parse()).collect::<Result<_>>()?,
            names: Some(self.names),
            file_stem: stem,
            ..ParquetOptions::default()
        })
    }
}

fn open(task: &[u8], settings: &str, directory: &str, stem: String) -> Result<TaskFiles> {
    let settings = ParquetSettings::parse(settings)?;
    let directory = PathBuf::from(directory);
    let target = if settings.partition_by.is_empty() { directory.join(format!("{stem}.parquet")) } else { directory };
    let reader = TaskReader::new(ReadTask::from_bytes(task)?)?.with_empty_headers();
    let schema = reader.schema()?;
    let writer = ParquetWriter::new(target, &schema, settings.options(stem)?)?;
    Ok(TaskFiles { reader, writer: Some(writer) })
}

fn finished() -> Error {
    Error::argument("kbat: the files are complete")
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeParquet_open<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    task: JByteArray<'l>,
    settings: JString<'l>,
    directory: JString<'l>,
    stem: JString<'l>,
) -> jlong {
    call(env, |env| {
        let task = env.convert_byte_array(&task)?;
        let (settings, directory) = (settings.try_to_string(env)?, directory.try_to_string(env)?);
        Ok(FILES.open(open(&task, &settings, &directory, stem.try_to_string(env)?)?))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeParquet_write<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
) -> jboolean {
    call(env, |_| {
        FILES.with(handle, |files| {
            let next = files.reader.next();
            warn(files.reader.take_warnings());
            let Some(batch) = next.transpose()? else { return Ok(false) };
            files.writer.as_mut().ok_or_else(finished)?.write(&batch)?;
            Ok(true)
        })
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeParquet_finish<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
) -> Strings<'l> {
    call(env, |env| {
        let writer = FILES.with(handle, |files| Ok(files.writer.take().ok_or_else(finished)?))?;
        let mut texts = Vec::new();
        for file in writer.finish()? {
            let path = file.path.into_os_string().into_string();
            texts.push(path.map_err(|_| Error::argument("kbat: the path of the target is not text in UTF-8"))?);
            texts.extend([file.row_count.to_string(), file.size.to_string()]);
        }
        strings(env, &texts)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeParquet_counts<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    handle: jlong,
) -> JLongArray<'l> {
    call(env, |env| {
        let stats = FILES.with(handle, |files| Ok(files.reader.stats()))?;
        longs(env, &counts_of(stats))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_kbat_spark_NativeParquet_close<'l>(env: EnvUnowned<'l>, _: JClass<'l>, handle: jlong) {
    call(env, |_| {
        FILES.close(handle);
        Ok(())
    });
}

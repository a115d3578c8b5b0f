//! Decodes fields by their schema, as the `read` methods of Kafka's generated classes do.
//!
//! | type | not flexible | flexible |
//! |---|---|---|
//! | string | i16 length, UTF-8 | uvarint length + 1 |
//! | bytes | i32 length | uvarint length + 1 |
//! | array | i32 count | uvarint count + 1 |
//! | nullable struct | i8, negative for null | the same; a tagged one begins with a uvarint, 0 for null |
//! | tagged fields | – | uvarint count; uvarint tag, uvarint length, value each |
//!
//! A negative length is null. Kafka ignores the length of tagged fields that it knows, and so does this module.

use crate::format::record::decode_as_java;
use crate::internal::reader::Reader;
use crate::internal::schema::{Context, Field, FieldType};
use crate::internal::{MessageError, Value};
use crate::log::Uuid;

/// Arrays reserve memory for at most this many elements before they are read.
const RESERVED: usize = 64;

/// Reads the fields of a message or struct.
pub(crate) fn fields<'a>(
    reader: &mut Reader<'a>,
    schema: &'static [Field],
    context: Context,
) -> Result<Vec<(&'static str, Value<'a>)>, MessageError> {
    let mut values = Vec::with_capacity(schema.len());
    for field in schema {
        let is_here = field.tag.is_none() && field.versions.contains(context.version);
        values.push(if is_here { Some(value(reader, field, context)?) } else { None });
    }
    if context.is_flexible {
        tagged_fields(reader, schema, context, &mut values)?;
    }
    let mut present = Vec::with_capacity(values.iter().flatten().count());
    for (field, value) in schema.iter().zip(values) {
        let value = value.filter(|value| field.tag.is_none() || !is_default(field, value));
        present.extend(value.map(|value| (field.name, value)));
    }
    Ok(present)
}

fn tagged_fields<'a>(
    reader: &mut Reader<'a>,
    schema: &'static [Field],
    context: Context,
    values: &mut [Option<Value<'a>>],
) -> Result<(), MessageError> {
    // Kafka's loop does not run for a negative count
    let count = reader.uvarint()?.cast_signed();
    for _ in 0..count {
        let tag = reader.uvarint()?;
        let len = reader.uvarint()?.cast_signed();
        let known = schema.iter().zip(values.iter_mut()).find(|(field, _)| field.tag == Some(tag));
        let Some((field, place)) = known else {
            reader.bytes(len)?;
            continue;
        };
        if !field.versions.contains(context.version) {
            return Err(reader.fault(format!("Tag {tag} is not valid for version {}", context.version)));
        }
        *place = Some(value(reader, field, context)?);
    }
    Ok(())
}

fn value<'a>(reader: &mut Reader<'a>, field: &'static Field, context: Context) -> Result<Value<'a>, MessageError> {
    let is_nullable = field.nullable.contains(context.version);
    if field.is_array {
        return array(reader, field, context, is_nullable);
    }
    if is_nullable && matches!(field.kind, FieldType::Struct { .. }) {
        let is_null = if field.tag.is_some() { reader.uvarint()?.cast_signed() <= 0 } else { reader.i8()? < 0 };
        if is_null {
            return Ok(Value::Null);
        }
    }
    scalar(reader, field, context, is_nullable, "")
}

fn array<'a>(
    reader: &mut Reader<'a>,
    field: &'static Field,
    context: Context,
    is_nullable: bool,
) -> Result<Value<'a>, MessageError> {
    let count = if context.is_flexible { reader.compact_len()? } else { reader.i32()? };
    let Ok(count) = usize::try_from(count) else { return null(reader, field, is_nullable, "") };
    let remaining = reader.remaining();
    if count > remaining {
        return Err(reader.fault(format!(
            "Tried to allocate a collection of size {count}, but there are only {remaining} bytes remaining."
        )));
    }
    let mut elements = Vec::with_capacity(count.min(RESERVED));
    for _ in 0..count {
        elements.push(scalar(reader, field, context, false, " element")?);
    }
    Ok(Value::Array(elements))
}

/// `part` follows the field's name in messages.
fn scalar<'a>(
    reader: &mut Reader<'a>,
    field: &'static Field,
    context: Context,
    is_nullable: bool,
    part: &str,
) -> Result<Value<'a>, MessageError> {
    reader.count_value()?;
    Ok(match field.kind {
        FieldType::Bool => Value::Bool(reader.i8()? != 0),
        FieldType::Int8 => Value::Int(reader.i8()?.into()),
        FieldType::Int16 => Value::Int(reader.i16()?.into()),
        FieldType::Uint16 => Value::Int(reader.u16()?.into()),
        FieldType::Int32 => Value::Int(reader.i32()?.into()),
        FieldType::Uint32 => Value::Int(reader.u32()?.into()),
        FieldType::Int64 => Value::Int(reader.i64()?),
        FieldType::Float64 => Value::Float(reader.f64()?),
        FieldType::Uuid => Value::Uuid(Uuid(reader.array()?)),
        FieldType::Text => return text(reader, field, context, is_nullable, part),
        FieldType::Bytes => {
            let len = if context.is_flexible { reader.compact_len()? } else { reader.i32()? };
            if len < 0 {
                return null(reader, field, is_nullable, part);
            }
            Value::Bytes(reader.bytes(len)?)
        }
        FieldType::Struct { is_checked } => {
            if is_checked && context.version > context.highest {
                return Err(reader.fault(format!("Can't read version {} of {}", context.version, field.name)));
            }
            Value::Struct(fields(reader, &field.fields, context)?)
        }
    })
}

fn text<'a>(
    reader: &mut Reader<'a>,
    field: &'static Field,
    context: Context,
    is_nullable: bool,
    part: &str,
) -> Result<Value<'a>, MessageError> {
    let len = if context.is_flexible { reader.compact_len()? } else { i32::from(reader.i16()?) };
    if len < 0 {
        return null(reader, field, is_nullable, part);
    }
    if len > i32::from(i16::MAX) {
        return Err(reader.fault(format!("string field {}{part} had invalid length {len}", field.name)));
    }
    Ok(Value::Text(decode_as_java(reader.bytes(len)?)))
}

fn null<'a>(reader: &Reader<'a>, field: &Field, is_nullable: bool, part: &str) -> Result<Value<'a>, MessageError> {
    if is_nullable {
        return Ok(Value::Null);
    }
    Err(reader.fault(format!("non-nullable field {}{part} was serialized as null", field.name)))
}

/// Whether a tagged field has its default, so that Kafka's JSON omits it.
fn is_default(field: &Field, value: &Value<'_>) -> bool {
    let default = field.default;
    match value {
        Value::Null => default == Some("null"),
        _ if default == Some("null") => false,
        Value::Bool(value) => *value == (default == Some("true")),
        Value::Int(value) => *value == default.and_then(|default| default.parse().ok()).unwrap_or(0),
        Value::Float(value) => value.to_bits() == 0,
        Value::Text(value) => *value == default.unwrap_or_default(),
        Value::Bytes(value) => value.is_empty(),
        Value::Uuid(value) => value.is_zero(),
        Value::Array(value) => value.is_empty(),
        Value::Struct(values) => values.iter().all(|(name, value)| {
            field.fields.iter().find(|field| field.name == *name).is_some_and(|field| is_default(field, value))
        }),
    }
}

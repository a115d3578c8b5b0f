//! [`Flexible`]: Kafka's flexible message format, in which lengths are varints plus 1, and every structure ends with
//! tagged fields (KIP-482).

use crate::error::{Error, ErrorKind, Result};
use crate::format::cursor::Cursor;
use crate::log::Uuid;

/// Reads a flexible message.
pub(super) struct Flexible<'a> {
    cursor: Cursor<'a>,
    len: u64,
}

impl<'a> Flexible<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { cursor: Cursor::new(bytes, 0), len: crate::num::u64_of(bytes.len()) }
    }

    pub(super) fn unsigned_varint(&mut self, field: &'static str) -> Result<u32> {
        self.cursor.unsigned_varint(field)
    }

    pub(super) fn i8(&mut self, field: &'static str) -> Result<i8> {
        self.cursor.u8(field).map(u8::cast_signed)
    }

    pub(super) fn i32(&mut self, field: &'static str) -> Result<i32> {
        self.cursor.i32(field)
    }

    pub(super) fn i64(&mut self, field: &'static str) -> Result<i64> {
        self.cursor.i64(field)
    }

    pub(super) fn uuid(&mut self, field: &'static str) -> Result<Uuid> {
        self.cursor.uuid(field).map(Uuid)
    }

    pub(super) fn bytes(&mut self, len: u32, field: &'static str) -> Result<&'a [u8]> {
        self.cursor.bytes(len, field)
    }

    /// Bytes that may be null.
    pub(super) fn nullable_bytes(&mut self, field: &'static str) -> Result<Option<&'a [u8]>> {
        match self.unsigned_varint(field)?.checked_sub(1) {
            Some(len) => self.bytes(len, field).map(Some),
            None => Ok(None),
        }
    }

    /// A string that is not null.
    pub(super) fn string(&mut self, field: &'static str) -> Result<String> {
        let Some(bytes) = self.nullable_bytes(field)? else {
            let kind = ErrorKind::InvalidValue { value: 0, expected: "a string that is not null" };
            return Err(self.cursor.fault(kind, field));
        };
        let text = std::str::from_utf8(bytes).map_err(|_| {
            let kind = ErrorKind::InvalidFile("the string is not UTF-8".to_owned());
            self.cursor.fault(kind, field)
        })?;
        Ok(text.to_owned())
    }

    /// An array of structures. Null is an empty array.
    pub(super) fn array<T>(
        &mut self,
        field: &'static str,
        mut element: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.unsigned_varint(field)?.saturating_sub(1);
        // grows with the bytes, not by the declared count
        (0..count).map(|_| element(self)).collect()
    }

    /// The tagged fields at the end of a structure. Calls `field` with the tag and the bytes of each.
    pub(super) fn tags(&mut self, mut field: impl FnMut(u32, &'a [u8]) -> Result<()>) -> Result<()> {
        let count = self.unsigned_varint("tagged_fields")?;
        for _ in 0..count {
            let tag = self.unsigned_varint("tag")?;
            let len = self.unsigned_varint("tag_len")?;
            field(tag, self.bytes(len, "tag")?)?;
        }
        Ok(())
    }

    /// Tagged fields of which none is known.
    pub(super) fn skip_tags(&mut self) -> Result<()> {
        self.tags(|_, _| Ok(()))
    }

    /// Fails if bytes follow the message.
    pub(super) fn end(&self) -> Result<()> {
        match self.len.saturating_sub(self.cursor.position()) {
            0 => Ok(()),
            count => Err(self.cursor.fault(ErrorKind::TrailingBytes { count }, "tagged_fields")),
        }
    }

    /// The error for an enum's number that Kafka does not define.
    pub(super) fn unknown_number(&self, value: i8, expected: &'static str, field: &'static str) -> Error {
        self.cursor.fault(ErrorKind::InvalidValue { value: i64::from(value), expected }, field)
    }
}

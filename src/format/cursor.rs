//! Checked big-endian reads. Each read names its field and knows its absolute position.

use crate::error::{Error, ErrorKind, Result};
use crate::num::{u64_of, usize_of};
use crate::wire::varint::{self, VarintFault};

/// A cursor over a slice that knows the position of the slice in the input.
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    end: u64,
}

impl<'a> Cursor<'a> {
    /// `position` is the position of `bytes` in the input.
    pub(crate) fn new(bytes: &'a [u8], position: u64) -> Self {
        Self { rest: bytes, end: position.saturating_add(u64_of(bytes.len())) }
    }

    /// Absolute position of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.end.saturating_sub(u64_of(self.rest.len()))
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(*head)
            }
            None => Err(self.fault(ErrorKind::Truncated, field)),
        }
    }

    #[cold]
    pub(crate) fn fault(&self, kind: ErrorKind, field: &'static str) -> Error {
        Error::new(kind).at(self.position()).in_field(field)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8> {
        self.array(field).map(u8::from_be_bytes)
    }

    pub(crate) fn i16(&mut self, field: &'static str) -> Result<i16> {
        self.array(field).map(i16::from_be_bytes)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32> {
        self.array(field).map(i32::from_be_bytes)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self, field: &'static str) -> Result<i64> {
        self.array(field).map(i64::from_be_bytes)
    }

    pub(crate) fn uuid(&mut self, field: &'static str) -> Result<[u8; 16]> {
        self.array(field)
    }

    pub(crate) fn unsigned_varint(&mut self, field: &'static str) -> Result<u32> {
        varint::read_unsigned_varint(&mut self.rest).map_err(|fault| self.fault(fault.into(), field))
    }

    pub(crate) fn bytes(&mut self, len: u32, field: &'static str) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(usize_of(len)) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(self.fault(ErrorKind::Truncated, field)),
        }
    }

    /// Bytes preceded by an `i32` length; any negative length is null.
    pub(crate) fn nullable_bytes(&mut self, field: &'static str) -> Result<Option<&'a [u8]>> {
        match u32::try_from(self.i32(field)?) {
            Ok(len) => self.bytes(len, field).map(Some),
            Err(_) => Ok(None),
        }
    }
}

impl From<VarintFault> for ErrorKind {
    fn from(fault: VarintFault) -> Self {
        match fault {
            VarintFault::Truncated => Self::Truncated,
            VarintFault::TooLong => Self::Varint,
        }
    }
}

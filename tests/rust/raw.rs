//! Batches built byte by byte, valid or invalid, with correct checksums.

/// Key, value and headers of a record to write.
pub(crate) type Shape<'a> = (Option<&'a [u8]>, Option<&'a [u8]>, &'a [kbat::format::NewHeader<'a>]);

/// Attribute bits of v2, and of v1 as far as it has them.
pub(crate) const LOG_APPEND_TIME: u16 = 0x08;
pub(crate) const TRANSACTIONAL: u16 = 0x10;
pub(crate) const CONTROL: u16 = 0x20;
pub(crate) const DELETE_HORIZON: u16 = 0x40;

pub(crate) const GZIP: u16 = 1;
pub(crate) const SNAPPY: u16 = 2;
pub(crate) const LZ4: u16 = 3;
pub(crate) const ZSTD: u16 = 4;

/// The fields of a v2 batch; [`V2::bytes`] adds length and checksum.
#[derive(Clone)]
pub(crate) struct V2 {
    pub(crate) base_offset: i64,
    pub(crate) attributes: u16,
    pub(crate) last_offset_delta: i32,
    pub(crate) base_timestamp: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) record_count: i32,
    pub(crate) records: Vec<u8>,
}

impl Default for V2 {
    fn default() -> Self {
        Self {
            base_offset: 0,
            attributes: 0,
            last_offset_delta: 0,
            base_timestamp: 1_000,
            max_timestamp: 1_000,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: 1,
            records: Vec::new(),
        }
    }
}

impl V2 {
    /// A batch of these records, each including its length.
    pub(crate) fn of(records: &[Vec<u8>]) -> Self {
        let count = i32::try_from(records.len()).unwrap();
        Self { record_count: count, last_offset_delta: count - 1, records: records.concat(), ..Self::default() }
    }

    /// A batch of one record with that body.
    pub(crate) fn of_body(body: &[u8]) -> Self {
        Self::of(&[with_len(body)])
    }

    /// A batch of one record, `value7` of Kafka's documentation, as a codec's stream.
    pub(crate) fn compressed(codec: u16, stream: &[u8]) -> Self {
        Self { attributes: codec, records: stream.to_vec(), ..Self::default() }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.base_offset.to_be_bytes());
        out.extend_from_slice(&i32::try_from(self.records.len() + 49).unwrap().to_be_bytes());
        out.extend_from_slice(&(-1_i32).to_be_bytes());
        out.push(2);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.attributes.to_be_bytes());
        out.extend_from_slice(&self.last_offset_delta.to_be_bytes());
        out.extend_from_slice(&self.base_timestamp.to_be_bytes());
        out.extend_from_slice(&self.max_timestamp.to_be_bytes());
        out.extend_from_slice(&self.producer_id.to_be_bytes());
        out.extend_from_slice(&self.producer_epoch.to_be_bytes());
        out.extend_from_slice(&self.base_sequence.to_be_bytes());
        out.extend_from_slice(&self.record_count.to_be_bytes());
        out.extend_from_slice(&self.records);
        fix_crc(&mut out);
        out
    }
}

/// Sets the correct checksum of the one batch in `bytes`.
pub(crate) fn fix_crc(bytes: &mut [u8]) {
    if bytes[16] == 2 {
        let crc = crc(CASTAGNOLI, &bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    } else {
        let crc = crc(IEEE, &bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.to_be_bytes());
    }
}

const CASTAGNOLI: u32 = 0x82f6_3b78;
const IEEE: u32 = 0xedb8_8320;

/// A reflected CRC of 32 bits with the textbook's table, independent of the code under test.
fn crc(polynomial: u32, bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256_u32)
        .map(|byte| (0..8).fold(byte, |crc, _| if crc & 1 == 1 { (crc >> 1) ^ polynomial } else { crc >> 1 }))
        .collect();
    !bytes.iter().fold(!0, |crc, byte| (crc >> 8) ^ table[usize::from(crc as u8 ^ byte)])
}

/// CRC-32 of zip and gzip.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    crc(IEEE, bytes)
}

/// A varint, zigzag.
pub(crate) fn varint(value: i32) -> Vec<u8> {
    varlong(value.into())
}

/// A varlong, zigzag.
pub(crate) fn varlong(value: i64) -> Vec<u8> {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    let mut out = Vec::new();
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out
}

/// A varint length and the bytes; the length is −1 for `None`.
pub(crate) fn field(bytes: Option<&[u8]>) -> Vec<u8> {
    match bytes {
        None => varint(-1),
        Some(bytes) => [varint(i32::try_from(bytes.len()).unwrap()), bytes.to_vec()].concat(),
    }
}

/// A record body with its length before it.
pub(crate) fn with_len(body: &[u8]) -> Vec<u8> {
    field(Some(body))
}

/// The body of a record with key and value and no headers.
pub(crate) fn body(timestamp_delta: i64, offset_delta: i32, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
    [vec![0], varlong(timestamp_delta), varint(offset_delta), field(key), field(value), varint(0)].concat()
}

/// The record at that offset delta, its length included: no key, value `v`.
pub(crate) fn record(offset_delta: i32) -> Vec<u8> {
    with_len(&body(0, offset_delta, None, Some(b"v")))
}

/// `count` such records.
pub(crate) fn plain_records(count: i32) -> Vec<Vec<u8>> {
    (0..count).map(record).collect()
}

/// A v0 or v1 message with its offset, size and checksum.
pub(crate) fn message(magic: u8, offset: i64, attributes: u8, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
    message_at(magic, offset, attributes, 1_000, key, value)
}

/// Such a message with a timestamp, which v0 omits.
pub(crate) fn message_at(
    magic: u8,
    offset: i64,
    attributes: u8,
    timestamp: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Vec<u8> {
    let mut fields = vec![magic, attributes];
    if magic > 0 {
        fields.extend_from_slice(&timestamp.to_be_bytes());
    }
    for bytes in [key, value] {
        let len = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap());
        fields.extend_from_slice(&len.to_be_bytes());
        fields.extend_from_slice(bytes.unwrap_or_default());
    }
    message_of(offset, &fields)
}

/// A message of these bytes, from the magic on.
pub(crate) fn message_of(offset: i64, fields: &[u8]) -> Vec<u8> {
    let mut out = offset.to_be_bytes().to_vec();
    out.extend_from_slice(&i32::try_from(fields.len() + 4).unwrap().to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(fields);
    fix_crc(&mut out);
    out
}

/// A compressed set: gzip, since its stream is the same for both magics.
pub(crate) fn wrapper(magic: u8, offset: i64, inner: &[Vec<u8>]) -> Vec<u8> {
    message(magic, offset, GZIP as u8, None, Some(&gzip(&inner.concat())))
}

/// One gzip member.
pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff], deflate(content).as_slice(), &gzip_trailer(content)].concat()
}

pub(crate) fn gzip_trailer(content: &[u8]) -> [u8; 8] {
    let [c0, c1, c2, c3] = crc(IEEE, content).to_le_bytes();
    let [l0, l1, l2, l3] = (content.len() as u32).to_le_bytes();
    [c0, c1, c2, c3, l0, l1, l2, l3]
}

/// A deflate stream without header and trailer.
pub(crate) fn deflate(content: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A raw snappy block.
pub(crate) fn snappy(content: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(content).unwrap()
}

/// One zstd frame with content size and without checksum.
pub(crate) fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(content, 3).unwrap()
}

//! [`SegmentName`]: `<20 digits of the start offset>-<22 characters of the segment id>`, which all layouts with segment
//! ids share.

use std::fmt;

use crate::log::Uuid;

/// Number of digits of a start offset.
const OFFSET_LEN: usize = 20;
/// Number of characters of an id.
const ID_LEN: usize = 22;

/// The name of a remote segment without its suffix. Its `Display` is the name as Kafka writes it.
///
/// ```
/// let name = kbat::tiered::SegmentName::parse("00000000000000000200-mVo54sbgQQuo3hYiBHTh5A").unwrap();
/// assert_eq!(name.start_offset, 200);
/// assert_eq!(name.segment_id.to_string(), "mVo54sbgQQuo3hYiBHTh5A");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    /// Offset of the segment's first record.
    pub start_offset: i64,
    /// Id of the copy. A segment that is copied again has another id.
    pub segment_id: Uuid,
}

impl SegmentName {
    /// Parses a name without directories and suffix. Returns `None` for any other name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (digits, rest) = name.split_at_checked(OFFSET_LEN)?;
        // the id may begin with a dash too
        let segment_id = parse_id(rest.strip_prefix('-')?)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self { start_offset: digits.parse().ok()?, segment_id })
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}-{}", self.start_offset, self.segment_id)
    }
}

/// Parses an id of exactly 22 characters.
pub(super) fn parse_id(text: &str) -> Option<Uuid> {
    if text.len() == ID_LEN { Uuid::parse(text) } else { None }
}

/// Splits `<name>-<id>` from the right, because names and ids may contain dashes.
pub(super) fn split_id(text: &str) -> Option<(&str, Uuid)> {
    let (rest, id) = text.split_at_checked(text.len().checked_sub(ID_LEN)?)?;
    let name = rest.strip_suffix('-').filter(|name| !name.is_empty())?;
    Some((name, parse_id(id)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_name_round_trips() {
        for name in ["00000000000000000361-0ODqXvZ4Rc6CpU4hjj-HWA", "00000000000000000147-_7sgSbwmRTa2cU52nsZAxg"] {
            assert_eq!(SegmentName::parse(name).unwrap().to_string(), name);
        }
        let dashes = format!("{:020}-{}", i64::MAX, "-".repeat(22));
        assert_eq!(SegmentName::parse(&dashes).unwrap().start_offset, i64::MAX);
    }

    #[test]
    fn segment_name_others_are_none() {
        for name in [
            "",
            "00000000000000000361",
            "00000000000000000361-",
            "361-0ODqXvZ4Rc6CpU4hjj-HWA",
            "00000000000000000361-0ODqXvZ4Rc6CpU4hjj-HW",
            "00000000000000000361-0ODqXvZ4Rc6CpU4hjj-HWAA",
            "00000000000000000361-0ODqXvZ4Rc6CpU4hjj-HW=",
            "0000000000000000036x-0ODqXvZ4Rc6CpU4hjj-HWA",
            "99999999999999999999-0ODqXvZ4Rc6CpU4hjj-HWA",
            "0000000000000000036\u{661}-0ODqXvZ4Rc6CpU4hjj-HWA",
        ] {
            assert_eq!(SegmentName::parse(name), None, "{name}");
        }
    }

    #[test]
    fn split_id_is_from_the_right() {
        let (name, id) = split_id("codec-none--R97PjuLacHABxEyAo4mAQ").unwrap();
        assert_eq!((name, id.to_string().as_str()), ("codec-none", "-R97PjuLacHABxEyAo4mAQ"));
        for text in ["", "-R97PjuLacHABxEyAo4mAQ", "--R97PjuLacHABxEyAo4mAQ", "a_-R97PjuLacHABxEyAo4mAQ"] {
            assert_eq!(split_id(text), None, "{text}");
        }
    }
}

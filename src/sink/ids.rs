//! Ids that nothing else has: of jobs and of topics.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::log::Uuid;

/// 128 bits that no other job has.
pub(super) fn random() -> u128 {
    let half = || {
        let mut hasher = RandomState::new().build_hasher();
        // a forked process has the keys of its parent
        hasher.write_u32(std::process::id());
        hasher.write_u128(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos());
        u128::from(hasher.finish())
    };
    (half() << 64) | half()
}

/// A new id of a topic: a random UUID without a leading dash, as Kafka makes them.
pub(super) fn new_topic_id() -> Uuid {
    loop {
        let mut bytes = random().to_be_bytes();
        for (place, kept, set) in [(6, 0x0f, 0x40), (8, 0x3f, 0x80)] {
            if let Some(byte) = bytes.get_mut(place) {
                *byte = (*byte & kept) | set;
            }
        }
        let id = Uuid(bytes);
        if !id.to_string().starts_with('-') {
            return id;
        }
    }
}

//! Numbers in messages, with the right plurals.

use std::fmt::Display;

/// A number and its noun, such as `1 segment` or `2 batches`.
pub(crate) fn count_of(count: u64, noun: &str) -> String {
    let ending = match (count, noun.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{count} {noun}{ending}")
}

/// A range of offsets, such as `offset 5` or `offsets 5 to 9`.
pub(crate) fn offsets(first: i64, last: i64) -> String {
    if first == last { format!("offset {first}") } else { format!("offsets {first} to {last}") }
}

/// The verb of [`offsets`].
pub(crate) fn are(first: i64, last: i64) -> &'static str {
    if first == last { "is" } else { "are" }
}

/// A range of offsets as the subject of a sentence, such as `offset 5 is` or `offsets 5 to 9 are`.
pub(crate) fn offsets_are(first: i64, last: i64) -> String {
    format!("{} {}", offsets(first, last), are(first, last))
}

/// Names for a message: the first ten, and the number of the others.
pub(crate) fn some_of<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    const MOST: usize = 10;
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    let shown = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        _ if names.is_empty() => "none".to_owned(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_have_the_right_plural() {
        let texts = [(0, "byte", "0 bytes"), (1, "batch", "1 batch"), (2, "batch", "2 batches"), (1, "byte", "1 byte")];
        for (count, noun, text) in texts {
            assert_eq!(count_of(count, noun), text);
        }
        assert_eq!(offsets(5, 5), "offset 5");
        assert_eq!(offsets(5, 9), "offsets 5 to 9");
        assert_eq!(offsets_are(5, 5), "offset 5 is");
        assert_eq!(offsets_are(5, 9), "offsets 5 to 9 are");
    }
}

//! [`Pattern`]: what a key or value must match.

use regex::bytes::Regex;

use crate::error::{Error, Result};

/// What a key or value must match: exact bytes or a regular expression, anywhere or as a whole.
///
/// Regular expressions are those of the crate `regex`, which takes linear time. `(?-u:\xff)` is a byte that is not
/// text.
#[derive(Debug, Clone)]
pub struct Pattern(Matcher);

#[derive(Debug, Clone)]
enum Matcher {
    Equal(Vec<u8>),
    Found(Regex),
}

impl Pattern {
    /// Matches exactly these bytes.
    #[must_use]
    pub fn equal(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Matcher::Equal(bytes.into()))
    }

    /// Matches bytes that contain a text.
    ///
    /// # Errors
    /// The text is too long for a pattern.
    pub fn containing(text: &str) -> Result<Self> {
        compile(text, &regex::escape(text))
    }

    /// Matches bytes in which a regular expression is found.
    ///
    /// # Errors
    /// The expression is invalid or too large.
    pub fn found(expression: &str) -> Result<Self> {
        compile(expression, expression)
    }

    /// Matches bytes that a regular expression matches from the first one to the last.
    ///
    /// # Errors
    /// The expression is invalid or too large.
    pub fn whole(expression: &str) -> Result<Self> {
        // alone, so that its parentheses can't close the group below
        Self::found(expression)?;
        compile(expression, &format!("\\A(?:{expression})\\z"))
            // an expression with the flag x may end with a comment, which only a line end closes
            .or_else(|_| compile(expression, &format!("\\A(?:{expression}\n)\\z")))
    }

    /// Whether bytes match. Null matches nothing.
    #[inline]
    pub(super) fn matches(&self, bytes: Option<&[u8]>) -> bool {
        match (&self.0, bytes) {
            (_, None) => false,
            (Matcher::Equal(equal), Some(bytes)) => equal == bytes,
            (Matcher::Found(regex), Some(bytes)) => regex.is_match(bytes),
        }
    }
}

fn compile(shown: &str, expression: &str) -> Result<Pattern> {
    Regex::new(expression).map(|regex| Pattern(Matcher::Found(regex))).map_err(|error| {
        // the message of a syntax error has several lines: the expression, a mark, and the reason
        let message = error.to_string();
        let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Error::argument(format!("the pattern {shown:?} is not a regular expression: {reason}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &Pattern, texts: &[&str]) -> Vec<bool> {
        texts.iter().map(|text| pattern.matches(Some(text.as_bytes()))).collect()
    }

    #[test]
    fn a_whole_match_has_no_rest() {
        let pattern = Pattern::whole("user-1|user-12?").unwrap();
        let texts = ["user-1", "user-12", "user-123", "a user-1", ""];
        assert_eq!(matches(&pattern, &texts), [true, true, false, false, false]);
        let commented = Pattern::whole("(?x) a b # both").unwrap();
        assert_eq!(matches(&commented, &["ab", "abc"]), [true, false]);
        assert_eq!(matches(&Pattern::whole("(?i)a#b").unwrap(), &["A#b", "A#b\n"]), [true, false]);
    }

    #[test]
    fn texts_are_not_expressions() {
        let pattern = Pattern::containing("1.5 (").unwrap();
        assert_eq!(matches(&pattern, &["is 1.5 (about)", "1x5 ("]), [true, false]);
        assert_eq!(matches(&Pattern::equal("a.c"), &["a.c", "abc"]), [true, false]);
    }

    #[test]
    fn bytes_that_are_not_text_match() {
        let pattern = Pattern::found("(?-u:\\xff)").unwrap();
        assert!(pattern.matches(Some(&[0, 0xff])));
        assert!(!pattern.matches(Some(&[0, 0xfe])));
        assert!(!Pattern::found("").unwrap().matches(None));
    }

    #[test]
    fn errors_have_one_line() {
        for wrong in ["a)(b", "(", "[z-a]"] {
            let message = Pattern::whole(wrong).unwrap_err().to_string();
            assert!(message.starts_with("the pattern \"") && !message.contains('\n'), "{message}");
        }
    }
}

//! Characters that a terminal shows, and escapes for those that would change it or could not be seen.

use std::io::Write;

use crate::dump::sink::push;

/// Appends text on one line, with Python's escapes for characters that are not printable.
pub(super) fn one_line(out: &mut Vec<u8>, text: &str) {
    escaped(out, text, |_| false);
}

/// Appends text with its line ends and tabs, and Python's escapes for other characters that are not printable.
fn lines(out: &mut Vec<u8>, text: &str) {
    escaped(out, text, |char| matches!(char, '\n' | '\t'));
}

/// Appends bytes, of which those that are not UTF-8 become `\xNN`.
pub(super) fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        lines(out, chunk.valid());
        for byte in chunk.invalid() {
            write(out, format_args!("\\x{byte:02x}"));
        }
    }
}

/// Whether a terminal shows a character as itself: it is not a control or format character, a separator other than the
/// space, a surrogate, unassigned or of private use.
pub(super) fn is_printable(char: char) -> bool {
    if char.is_ascii() {
        return matches!(char, ' '..='~');
    }
    // the standard library has these classes only in its escapes, and escapes combining characters only at the start
    char.escape_debug().next() == Some(char) || format!("a{char}").escape_debug().nth(1) == Some(char)
}

fn escaped(out: &mut Vec<u8>, text: &str, is_kept: impl Fn(char) -> bool) {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return push(out, text);
    }
    for char in text.chars() {
        if is_kept(char) || is_printable(char) {
            push(out, char.encode_utf8(&mut [0; 4]));
            continue;
        }
        match (char, u32::from(char)) {
            ('\t', _) => push(out, "\\t"),
            ('\n', _) => push(out, "\\n"),
            ('\r', _) => push(out, "\\r"),
            (_, code @ ..=0xff) => write(out, format_args!("\\x{code:02x}")),
            (_, code @ ..=0xffff) => write(out, format_args!("\\u{code:04x}")),
            (_, code) => write(out, format_args!("\\U{code:08x}")),
        }
    }
}

/// Appends formatted text.
pub(super) fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // a vector takes everything
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = Vec::new();
        one_line(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_not_printable_has_pythons_escapes() {
        let pairs = [
            ("plain \\ \"text\"", "plain \\ \"text\""),
            ("é 漢 e\u{301}", "é 漢 e\u{301}"),
            ("\t\n\r\u{1b}[31m\u{7f}", "\\t\\n\\r\\x1b[31m\\x7f"),
            ("\u{9b}\u{a0}\u{ad}", "\\x9b\\xa0\\xad"),
            ("\u{2028}\u{202e}\u{fdd0}", "\\u2028\\u202e\\ufdd0"),
            ("\u{1f600}\u{e0001}\u{10ffff}", "\u{1f600}\\U000e0001\\U0010ffff"),
        ];
        for (text, expected) in pairs {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn bytes_keep_their_lines() {
        let mut out = Vec::new();
        bytes(&mut out, b"a\n\tb\x1b\r\xff\xc3\xa9");
        assert_eq!(String::from_utf8(out).unwrap(), "a\n\tb\\x1b\\r\\xffé");
    }
}

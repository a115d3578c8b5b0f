//! Parsers of option values. Each returns a value, or text that describes the accepted forms.

use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::epoch::{SECONDS, smaller_unit};
use crate::plan::paths::local_path;

pub(crate) type Parsed<T> = Result<T, String>;

const SIZES: [(&str, u64); 8] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
];
const TIMES: [(&str, u64); 7] =
    [("", 1), ("ms", 1), ("s", 1000), ("m", 60_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Smaller numbers are probably seconds.
pub(crate) const LEAST_MILLISECONDS: i64 = SECONDS.end;
const EXAMPLE: &str = "2026-11-22T00:00:00Z";

fn time_form() -> String {
    format!("must be milliseconds since 1970, UTC, like 1700000000000, or text with a zone, like {EXAMPLE}")
}

pub(crate) fn parse_bool(text: &str) -> Parsed<bool> {
    match text.trim().to_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// A whole number of at most 63 bits without a sign.
fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number: Option<i64> = if is_decimal { text.parse().ok() } else { None };
    number.map(i64::unsigned_abs)
}

pub(crate) fn parse_count(text: &str) -> Parsed<u64> {
    whole(text).ok_or_else(|| "must be a whole number, 0 or more".to_owned())
}

pub(crate) fn parse_positive_count(text: &str) -> Parsed<u64> {
    whole(text).filter(|number| *number > 0).ok_or_else(|| "must be a whole number, 1 or more".to_owned())
}

/// Parses a whole number that may be negative.
pub(crate) fn parse_number(text: &str) -> Parsed<i32> {
    text.trim().parse().map_err(|_| "must be a whole number".to_owned())
}

/// A number and its unit, in lower case.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let lower = text.trim().to_lowercase();
    let digits = lower.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = lower.split_at_checked(digits)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Parses a number of bytes, perhaps with a unit.
pub(crate) fn parse_len(text: &str) -> Parsed<u64> {
    with_unit(text, &SIZES)
        .ok_or_else(|| "must be a number of bytes, or a number with a unit, like 256m or 1g".to_owned())
}

pub(crate) fn parse_positive_len(text: &str) -> Parsed<u64> {
    match parse_len(text)? {
        0 => Err("must be at least 1 byte".to_owned()),
        number => Ok(number),
    }
}

/// Parses a duration into milliseconds, as Spark writes them: `15m`, `10s`, `500ms`.
pub(crate) fn parse_duration(text: &str) -> Parsed<u64> {
    with_unit(text, &TIMES).ok_or_else(|| {
        "must be a duration with a unit: 500ms, 10s, 15m, 2h or 1d; a bare number is milliseconds".to_owned()
    })
}

/// Parses a time into milliseconds since the epoch: a whole number of them, or ISO 8601 with a time zone.
pub(crate) fn parse_timestamp(text: &str) -> Parsed<i64> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return checked_milliseconds(text.parse().map_err(|_| time_form())?);
    }
    let Ok(moment) = text.parse::<Timestamp>() else {
        return Err(match text.parse::<DateTime>() {
            Ok(moment) => format!("has no time zone; write {moment}Z if it is in UTC; {}", time_form()),
            Err(_) => time_form(),
        });
    };
    // up to the first millisecond that is not before the time
    let milliseconds = moment.as_nanosecond().saturating_add(999_999).div_euclid(1_000_000);
    match i64::try_from(milliseconds) {
        Ok(milliseconds) if milliseconds >= 0 => Ok(milliseconds),
        _ => Err(format!("is before 1970; {}", time_form())),
    }
}

/// Checks a number of milliseconds since the epoch: refuses one that is probably in another unit.
pub(crate) fn checked_milliseconds(number: i64) -> Parsed<i64> {
    if number < 0 {
        return Err(time_form());
    }
    if 0 < number && number < LEAST_MILLISECONDS {
        return Err(format!(
            "{number} looks like seconds, but the unit is milliseconds: write {}, or the time as text with a zone, \
             like {EXAMPLE}",
            number.saturating_mul(1000)
        ));
    }
    if let Some((unit, milliseconds)) = smaller_unit(number) {
        return Err(format!("{number} looks like {unit}, but the unit is milliseconds: write {milliseconds}"));
    }
    Ok(number)
}

/// Parses text that is not empty.
pub(crate) fn parse_text(text: &str) -> Parsed<String> {
    if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Parses a directory of a file system into its absolute path.
pub(crate) fn parse_directory(text: &str) -> Parsed<String> {
    local_path(&parse_text(text)?).map_err(|error| error.to_string().trim_start_matches("kbat: ").to_owned())
}

/// Parses a JSON list of paths.
pub(crate) fn parse_paths(text: &str) -> Parsed<Vec<String>> {
    serde_json::from_str::<Vec<String>>(text)
        .ok()
        .filter(|paths| paths.iter().all(|path| !path.is_empty()))
        .ok_or_else(|| "must be a JSON list of paths, as written by load([...])".to_owned())
}

/// Parses a JSON object of texts.
pub(crate) fn parse_pairs(text: &str) -> Parsed<Vec<(String, String)>> {
    serde_json::from_str::<std::collections::BTreeMap<String, String>>(text)
        .ok()
        .filter(|pairs| pairs.values().all(|value| !value.is_empty()))
        .map(|pairs| pairs.into_iter().collect())
        .ok_or_else(|| "must be JSON of ids and paths, like {\"key1\": \"/keys/key1.pem\"}".to_owned())
}

/// Parses names separated by commas.
pub(crate) fn parse_names(text: &str) -> Parsed<Vec<String>> {
    let names: Vec<String> =
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if names.is_empty() { Err("is empty; must be names separated by commas".to_owned()) } else { Ok(names) }
}

/// Parses one of some words, in any case.
pub(crate) fn one_of(choices: &[&'static str], text: &str) -> Parsed<&'static str> {
    let word = text.trim().to_lowercase();
    choices.iter().find(|choice| **choice == word).copied().ok_or_else(|| match choices {
        [others @ .., last] => format!("must be {} or {last}", others.join(", ")),
        [] => "has no value".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_zone_and_are_not_in_seconds() {
        assert_eq!(parse_timestamp("1700000000000"), Ok(1_700_000_000_000));
        assert_eq!(parse_timestamp("2026-11-22T00:00:00Z"), Ok(1_795_305_600_000));
        assert_eq!(parse_timestamp("2026-11-22 01:00:00+01:00"), Ok(1_795_305_600_000));
        assert_eq!(parse_timestamp("2026-11-22T00:00:00.0001Z"), Ok(1_795_305_600_001));
        assert_eq!(parse_timestamp("1969-12-31T23:59:59.9999Z"), Ok(0));
        assert!(
            parse_timestamp("1700000000000000").unwrap_err().contains("microseconds, but the unit is milliseconds")
        );
        assert!(parse_timestamp("1700000000").unwrap_err().contains("write 1700000000000"));
        assert!(parse_timestamp("2026-11-22T00:00:00").unwrap_err().contains("write 2026-11-22T00:00:00Z if"));
        assert!(parse_timestamp("1969-12-31T23:59:59.999Z").unwrap_err().starts_with("is before 1970"));
        assert!(parse_timestamp("soon").unwrap_err().starts_with("must be milliseconds"));
    }

    #[test]
    fn numbers_have_units() {
        assert_eq!(parse_len("256 MB"), Ok(256 << 20));
        assert_eq!(parse_duration("15m"), Ok(900_000));
        assert!(parse_len("12x").is_err() && parse_len("").is_err() && parse_positive_len("0k").is_err());
        assert!(parse_count("-1").is_err() && parse_positive_count("0").is_err());
    }
}

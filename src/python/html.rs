//! Notebook views: small HTML tables without scripts and style sheets. All text is escaped.

use std::fmt::{Display, Write};

/// Maximum rows of a list; the table shows only the number of further rows.
const MOST_ROWS: usize = 20;

/// Aligns text cells to the left.
const LEFT: &str = "style=\"text-align: left\"";

/// A caption and rows.
pub(crate) struct Table {
    html: String,
}

impl Table {
    pub(crate) fn new(caption: &str) -> Self {
        Self { html: format!("<table><caption {LEFT}>{}</caption>", escape(caption)) }
    }

    /// Adds a row with a name and a text.
    pub(crate) fn row(mut self, name: &str, text: impl Display) -> Self {
        let (name, text) = (escape(name), escape(&text.to_string()));
        // writing into a String can't fail
        let _ = write!(self.html, "<tr><th {LEFT}>{name}</th><td {LEFT}>{text}</td></tr>");
        self
    }

    /// Adds a row if there is a text.
    pub(crate) fn row_if(self, name: &str, text: Option<impl Display>) -> Self {
        match text {
            Some(text) => self.row(name, text),
            None => self,
        }
    }

    /// Adds a header and rows with several cells, at most `MOST_ROWS`.
    pub(crate) fn list<const N: usize>(
        mut self,
        head: [&str; N],
        rows: impl ExactSizeIterator<Item = [String; N]>,
    ) -> Self {
        let more = rows.len().saturating_sub(MOST_ROWS);
        self.cells("th", head.map(str::to_owned));
        for row in rows.take(MOST_ROWS) {
            self.cells("td", row);
        }
        if more > 0 {
            let _ = write!(self.html, "<tr><td {LEFT} colspan=\"{N}\">and {more} more</td></tr>");
        }
        self
    }

    fn cells<const N: usize>(&mut self, tag: &str, texts: [String; N]) {
        self.html.push_str("<tr>");
        for text in texts {
            let _ = write!(self.html, "<{tag} {LEFT}>{}</{tag}>", escape(&text));
        }
        self.html.push_str("</tr>");
    }

    pub(crate) fn finish(mut self) -> String {
        self.html.push_str("</table>");
        self.html
    }
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// A byte count in readable units: `61 bytes`, `1.5 MiB`.
pub(crate) fn size(len: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if len < 1024 {
        return format!("{len} byte{}", if len == 1 { "" } else { "s" });
    }
    let power = len.ilog2() / 10;
    let unit = usize::try_from(power.saturating_sub(1)).ok().and_then(|index| UNITS.get(index)).unwrap_or(&"EiB");
    // tenths, rounded down: a value just below 1 MiB must not show as 1024.0 KiB
    let tenths = u128::from(len).saturating_mul(10) >> power.saturating_mul(10);
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// An instant in UTC: `2023-11-14 22:13:20.123 UTC`. Kafka's "none" and years beyond 9999 are shown as numbers.
pub(crate) fn instant(timestamp_ms: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    const LAST_MS: i64 = 253_402_300_799_999;
    if !(0..=LAST_MS).contains(&timestamp_ms) {
        return timestamp_ms.to_string();
    }
    let (year, month, day) = date(timestamp_ms / DAY_MS);
    let in_day = timestamp_ms % DAY_MS;
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1000 % 60, in_day % 1000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{milli:03} UTC")
}

/// Year, month and day of a day since 1970-01-01, up to the year 9999.
///
/// Counts from 1 March of the year 0, so that a leap day is the last day of a year
/// (<https://howardhinnant.github.io/date_algorithms.html#civil_from_days>).
#[expect(clippy::arithmetic_side_effects, reason = "days of the years 1970 to 9999 stay below 10 million")]
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instant_is_the_calendars() {
        for (timestamp, text) in [
            (0, "1970-01-01 00:00:00.000 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00.000 UTC"),
            (1_700_000_000_123, "2023-11-14 22:13:20.123 UTC"),
            (4_107_542_399_999, "2100-02-28 23:59:59.999 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000 UTC"),
            (253_402_300_799_999, "9999-12-31 23:59:59.999 UTC"),
            (253_402_300_800_000, "253402300800000"),
            (-1, "-1"),
        ] {
            assert_eq!(instant(timestamp), text);
        }
    }

    #[test]
    fn size_has_a_persons_units() {
        for (len, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1_048_575, "1023.9 KiB"),
            (1_572_864, "1.5 MiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(size(len), text);
        }
    }

    #[test]
    fn table_escapes_what_it_shows() {
        let html = Table::new("<b>").row("a", "x&y<script>\"'").row_if("no", None::<i32>).finish();
        assert!(html.contains("&lt;b&gt;") && html.contains("x&amp;y&lt;script&gt;&quot;&#x27;"), "{html}");
        assert!(!html.contains("no<"), "{html}");
    }

    #[test]
    fn list_shows_some_and_counts_the_rest() {
        let html = |count: u32| Table::new("").list(["<n>"], (0..count).map(|n| [format!("<{n}>")])).finish();
        assert!(html(20).contains("&lt;n&gt;") && html(20).contains("&lt;19&gt;") && !html(20).contains("more"));
        assert!(html(23).contains("&lt;19&gt;") && !html(23).contains("&lt;20&gt;") && html(23).contains("and 3 more"));
    }
}

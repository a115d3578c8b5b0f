//! [`OptionRow`]: one option of a table, and what all tables share: names in any case, conflicts, suggestions.

use crate::error::{Error, Result};
use crate::plan::values::Parsed;

/// Stores the value of an option.
pub(crate) type SetOption<T> = fn(&mut T, &str) -> Parsed<()>;

/// One option, which sets a field of `T`.
pub struct OptionRow<T> {
    /// Its name. A name that ends in `<name>` means all options with that beginning.
    pub name: &'static str,
    /// Another name of it.
    pub alias: Option<&'static str>,
    /// The default, as the documentation shows it; empty if it has none.
    pub default: &'static str,
    /// What it does.
    pub text: &'static str,
    /// Whether no message may contain its value.
    pub is_secret: bool,
    pub(crate) set: SetOption<T>,
}

/// A row without an alias, whose values may be shown.
pub(crate) const fn row<T>(
    name: &'static str,
    default: &'static str,
    set: SetOption<T>,
    text: &'static str,
) -> OptionRow<T> {
    OptionRow { name, alias: None, default, text, is_secret: false, set }
}

impl<T> OptionRow<T> {
    /// Whether the row means all options with a beginning.
    pub(crate) fn is_family(&self) -> bool {
        self.name.ends_with("<name>")
    }

    pub(crate) fn is_named(&self, lower: &str) -> bool {
        match self.name.strip_suffix("<name>") {
            Some(beginning) => lower.starts_with(beginning),
            None => self.name.to_lowercase() == lower || self.alias.is_some_and(|alias| alias == lower),
        }
    }
}

/// Stores a parsed value.
pub(crate) fn set<T>(place: &mut T, value: Parsed<T>) -> Parsed<()> {
    *place = value?;
    Ok(())
}

/// A number of a narrower type, whose maximum `most` describes.
pub(crate) fn narrowed<T: TryFrom<u64>>(number: u64, most: &str) -> Parsed<T> {
    T::try_from(number).map_err(|_| format!("must be at most {most}"))
}

/// Options that Spark adds for a table.
const OF_TABLES: [&str; 3] = ["owner", "location", "provider"];

/// The options of one kind of job.
pub(crate) struct OptionTable<T: 'static> {
    pub(crate) rows: &'static [OptionRow<T>],
    /// Names that other functions use for options, in lower case, and the options that they correspond to.
    pub(crate) synonyms: &'static [(&'static str, &'static str)],
}

impl<T: 'static> OptionTable<T> {
    fn unknown(&self, name: &str) -> Error {
        let lower = name.to_lowercase();
        // Spark passes the names in lower case
        let note = if lower == name { " (Spark lower-cased it)" } else { "" };
        let shown = format!("kbat: unknown option {name}{note}");
        if OF_TABLES.contains(&lower.as_str()) {
            return Error::argument(format!(
                "{shown}: Spark sets it for CREATE TABLE, which does not pass options; use CREATE TEMPORARY VIEW"
            ));
        }
        let synonym = self.synonyms.iter().find(|(other, _)| *other == lower).map(|(_, option)| *option);
        if let Some(near) = synonym.or_else(|| self.nearest(&lower)) {
            return Error::argument(format!("{shown}; did you mean {near}?"));
        }
        let names: Vec<&str> = self.rows.iter().map(|row| row.name).collect();
        Error::argument(format!("{shown}; the options are: {}", names.join(", ")))
    }

    /// The option whose name is most similar, if one is similar.
    fn nearest(&self, lower: &str) -> Option<&'static str> {
        let names = self.rows.iter().map(|row| row.name);
        let scored = names.map(|name| (strsim::sorensen_dice(lower, &name.to_lowercase()), name));
        scored.filter(|(score, _)| *score >= 0.6).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
    }
}

/// Parses options one after the other.
pub(crate) struct OptionParser<'a, T: 'static> {
    table: OptionTable<T>,
    pub(crate) options: T,
    /// Names of rows, whether their other names were used, and the texts that set them.
    seen: Vec<(&'static str, bool, &'a str)>,
}

impl<'a, T: Clone + Default + PartialEq + 'static> OptionParser<'a, T> {
    pub(crate) fn new(table: OptionTable<T>) -> Self {
        Self { table, options: T::default(), seen: Vec::new() }
    }

    /// Parses an option, whatever the case of its name, and returns its row.
    ///
    /// # Errors
    /// An unknown name, a wrong value, or a value that differs from the one that another name of the option set.
    pub(crate) fn set(&mut self, name: &str, text: &'a str) -> Result<&'static OptionRow<T>> {
        let lower = name.to_lowercase();
        let rows = self.table.rows;
        let Some(row) = rows.iter().find(|row| row.is_named(&lower)) else { return Err(self.table.unknown(name)) };
        let before = self.options.clone();
        let is_alias = row.alias.is_some_and(|alias| alias == lower);
        let shown = if is_alias || row.is_family() { name } else { row.name };
        let value = if row.is_secret { String::new() } else { format!("='{text}'") };
        (row.set)(&mut self.options, text)
            .map_err(|reason| Error::argument(format!("kbat: option {shown}{value}: {reason}")))?;
        let other = self.seen.iter().find(|(known, ..)| *known == row.name && !row.is_family());
        if let Some((_, is_other_alias, other)) = other {
            if *other != text && self.options != before {
                // in one order, whichever Spark passes first
                let second = if is_alias || *is_other_alias { row.alias.unwrap_or(row.name) } else { name };
                return Err(Error::argument(format!(
                    "kbat: options {} and {second} conflict: set only one of them",
                    row.name
                )));
            }
            self.options = before;
        }
        self.seen.push((row.name, is_alias, text));
        Ok(row)
    }

    /// Whether an option was set.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.seen.iter().any(|(known, ..)| *known == name)
    }
}

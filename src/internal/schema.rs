//! The table of schemas, parsed once from `schemas.txt`.
//!
//! The file's header describes its lines. They are trusted: the tests parse all of them.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::{Lines, SplitWhitespace};
use std::sync::OnceLock;

static TABLE: OnceLock<SchemaTable> = OnceLock::new();
const TEXT: &str = include_str!("schemas.txt");

/// Messages that are numbered together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Set {
    GroupKey,
    GroupValue,
    TransactionKey,
    TransactionValue,
    ShareKey,
    ShareValue,
    Metadata,
    Remote,
    /// Messages without a number.
    Single,
}

impl Set {
    fn parse(family: &str, kind: &str) -> Option<Self> {
        Some(match (family, kind) {
            ("group", "key") => Self::GroupKey,
            ("group", "value") => Self::GroupValue,
            ("transaction", "key") => Self::TransactionKey,
            ("transaction", "value") => Self::TransactionValue,
            ("share", "key") => Self::ShareKey,
            ("share", "value") => Self::ShareValue,
            ("metadata", "record") => Self::Metadata,
            ("remote", "record") => Self::Remote,
            ("single", "data") => Self::Single,
            _ => return None,
        })
    }
}

/// The fields of a message in all versions.
#[derive(Debug, PartialEq)]
pub(crate) struct Schema {
    set: Set,
    pub(crate) type_id: i16,
    pub(crate) name: &'static str,
    /// The known versions.
    pub(crate) lowest: i16,
    pub(crate) highest: i16,
    flexible: Versions,
    pub(crate) fields: Vec<Field>,
}

/// What all fields of a message have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub(crate) version: i16,
    pub(crate) is_flexible: bool,
    /// The last known version of the message.
    pub(crate) highest: i16,
}

impl Schema {
    pub(crate) fn context(&self, version: i16) -> Context {
        Context { version, is_flexible: self.flexible.contains(version), highest: self.highest }
    }

    fn parse(line: &'static str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let set = Set::parse(words.next()?, words.next()?)?;
        let type_id = words.next()?.parse().ok()?;
        let name = words.next()?;
        let (lowest, highest) = words.next()?.split_once('-')?;
        Some(Self {
            set,
            type_id,
            name,
            lowest: lowest.parse().ok()?,
            highest: highest.parse().ok()?,
            flexible: Versions::parse(words.next()?)?,
            fields: Vec::new(),
        })
    }
}

/// A field of a message or struct.
#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: FieldType,
    pub(crate) is_array: bool,
    pub(crate) versions: Versions,
    pub(crate) nullable: Versions,
    pub(crate) tag: Option<u32>,
    /// The default as text; `None` for zero, false and empty.
    pub(crate) default: Option<&'static str>,
    /// The fields of a struct.
    pub(crate) fields: Vec<Field>,
}

impl Field {
    /// Parses a line of a depth; `None` for all other lines.
    fn parse(line: &'static str, depth: usize) -> Option<Self> {
        let mut words = line.split_whitespace();
        if words.next()?.parse::<usize>() != Ok(depth) {
            return None;
        }
        let name = words.next()?;
        let shown = words.next()?;
        let element = shown.strip_prefix("[]");
        let field = Self {
            name,
            kind: FieldType::parse(element.unwrap_or(shown))?,
            is_array: element.is_some(),
            versions: Versions::parse(words.next()?)?,
            nullable: Versions::NONE,
            tag: None,
            default: None,
            fields: Vec::new(),
        };
        field.with_options(words)
    }

    fn with_options(mut self, words: SplitWhitespace<'static>) -> Option<Self> {
        for word in words {
            match word.split_once('=')? {
                ("n", versions) => self.nullable = Versions::parse(versions)?,
                ("t", tag) => self.tag = Some(tag.parse().ok()?),
                ("d", default) => self.default = Some(default),
                _ => return None,
            }
        }
        Some(self)
    }
}

/// The type of a field, or of the elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldType {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Float64,
    Text,
    Bytes,
    Uuid,
    /// A struct. Kafka refuses to read a checked one in a version that is newer than the last known one.
    Struct {
        is_checked: bool,
    },
}

impl FieldType {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "uint16" => Self::Uint16,
            "int32" => Self::Int32,
            "uint32" => Self::Uint32,
            "int64" => Self::Int64,
            "float64" => Self::Float64,
            "string" => Self::Text,
            "bytes" | "records" => Self::Bytes,
            "uuid" => Self::Uuid,
            "struct" => Self::Struct { is_checked: true },
            "common" => Self::Struct { is_checked: false },
            _ => return None,
        })
    }
}

/// A range of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Versions {
    low: i16,
    high: i16,
}

impl Versions {
    const NONE: Self = Self { low: 1, high: 0 };

    pub(crate) fn contains(self, version: i16) -> bool {
        (self.low..=self.high).contains(&version)
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "none" {
            return Some(Self::NONE);
        }
        let (low, high) = match text.strip_suffix('+') {
            Some(low) => (low.parse().ok()?, i16::MAX),
            None => text.split_once('-').and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)))?,
        };
        // versions before the first one count as that one
        Some(Self { low: if low == 0 { i16::MIN } else { low }, high })
    }
}

struct SchemaTable {
    numbered: HashMap<(Set, i16), Schema>,
    single: HashMap<&'static str, Schema>,
}

fn table() -> &'static SchemaTable {
    TABLE.get_or_init(|| {
        let mut table = SchemaTable { numbered: HashMap::new(), single: HashMap::new() };
        for schema in schemas(TEXT) {
            match schema.set {
                Set::Single => table.single.insert(schema.name, schema),
                set => table.numbered.insert((set, schema.type_id), schema),
            };
        }
        table
    })
}

fn schemas(text: &'static str) -> Vec<Schema> {
    let mut lines = text.lines().peekable();
    let mut schemas = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(mut schema) = Schema::parse(line) {
            schema.fields = fields(&mut lines, 1);
            schemas.push(schema);
        }
    }
    schemas
}

fn fields(lines: &mut Peekable<Lines<'static>>, depth: usize) -> Vec<Field> {
    let mut found = Vec::new();
    while let Some(mut field) = lines.peek().and_then(|line| Field::parse(line, depth)) {
        lines.next();
        field.fields = fields(lines, depth.saturating_add(1));
        found.push(field);
    }
    found
}

/// The schema of a numbered message.
pub(crate) fn schema(set: Set, type_id: i16) -> Option<&'static Schema> {
    table().numbered.get(&(set, type_id))
}

/// The schema of a message without a number.
pub(crate) fn single(name: &str) -> Option<&'static Schema> {
    table().single.get(name)
}

/// The name of a message as a Java enumeration writes it: `NoOpRecord` is `NO_OP_RECORD`.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len().saturating_add(8));
    for (place, letter) in name.chars().enumerate() {
        if place > 0 && letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_uppercase());
    }
    snake
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;

    fn count(fields: &[Field]) -> usize {
        fields.iter().map(|field| 1 + count(&field.fields)).sum()
    }

    #[test]
    fn every_line_of_the_table_is_parsed() {
        let lines = TEXT.lines().filter(|line| !line.starts_with('#')).count();
        let schemas = schemas(TEXT);
        assert_eq!(schemas.iter().map(|schema| 1 + count(&schema.fields)).sum::<usize>(), lines);
        assert_eq!(table().numbered.len() + table().single.len(), schemas.len());
        assert!(schemas.len() >= 92, "{}", schemas.len());
    }

    #[test]
    fn structs_have_fields_and_others_have_none() {
        fn check(field: &Field) {
            assert_eq!(matches!(field.kind, FieldType::Struct { .. }), !field.fields.is_empty(), "{field:?}");
            field.fields.iter().for_each(check);
        }
        for schema in schemas(TEXT) {
            schema.fields.iter().for_each(check);
            assert!(schema.lowest <= schema.highest);
        }
    }

    #[test]
    fn snake_case_is_that_of_java_enumerations() {
        assert_eq!(snake_case("NoOpRecord"), "NO_OP_RECORD");
        assert_eq!(snake_case("UserScramCredentialRecord"), "USER_SCRAM_CREDENTIAL_RECORD");
    }
}

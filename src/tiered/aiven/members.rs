//! [`parse_members`]: a JSON document without the members that nothing reads, so that they take no memory.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Most members of a document that are kept.
const MAX_MEMBERS: usize = 100_000;

/// Parses a JSON document. Of its objects, only members with these names are kept, except that the object
/// `whole` keeps all. Arrays have no elements.
///
/// # Errors
/// That the document is malformed, or has more than [`MAX_MEMBERS`] such members.
pub(super) fn parse_members(bytes: &[u8], names: &[&str], whole: &str) -> serde_json::Result<Value> {
    let left = Cell::new(MAX_MEMBERS);
    let mut document = serde_json::Deserializer::from_slice(bytes);
    let value = Members { names, whole, is_whole: false, left: &left }.deserialize(&mut document)?;
    document.end()?;
    Ok(value)
}

/// Builds a value of the members with some names.
#[derive(Clone, Copy)]
struct Members<'n> {
    names: &'n [&'n str],
    whole: &'n str,
    /// Whether the value is the object that keeps all members.
    is_whole: bool,
    /// Members that may still be kept.
    left: &'n Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(Vec::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if !self.is_whole && name != self.whole && !self.names.contains(&name.as_str()) {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let left = self.left.get().checked_sub(1);
            self.left.set(left.ok_or_else(|| A::Error::custom(format!("it has more than {MAX_MEMBERS} members")))?);
            let value = members.next_value_seed(Self { is_whole: name == self.whole, ..self })?;
            kept.insert(name, value);
        }
        Ok(Value::Object(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(text: &str) -> serde_json::Result<Value> {
        parse_members(text.as_bytes(), &["a", "b"], "epochs")
    }

    #[test]
    fn other_members_and_elements_are_not_kept() {
        let text = r#"{"a":{"b":-1,"c":{"a":1}},"b":[{"a":1},2],"d":[1],"epochs":{"7":1.5,"c":{"a":"x","c":null}}}"#;
        assert_eq!(parse(text).unwrap(), json!({"a": {"b": -1}, "b": [], "epochs": {"7": 1.5, "c": {"a": "x"}}}));
    }

    #[test]
    fn malformed_documents_are_errors() {
        for text in ["", "{", r#"{"c":[1}"#, r#"{"c":{"a":1}"#, "{} x", r#"{"c":tru}"#] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn number_of_members_is_bounded() {
        let members: Vec<String> = (0..=MAX_MEMBERS).map(|number| format!("\"{number}\":0")).collect();
        let error = parse(&format!("{{\"epochs\":{{{}}}}}", members.join(","))).unwrap_err();
        assert!(error.to_string().contains("more than 100000 members"), "{error}");
        parse(&format!("{{\"other\":{{{}}}}}", members.join(","))).unwrap();
    }
}

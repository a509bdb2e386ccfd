//! Reading JSON so that an error says which file, which field and which place.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::error::CheckpointError;

/// The byte order mark that some editors write before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a whole file.
pub(crate) fn read<T: DeserializeOwned>(file: &str, bytes: &[u8]) -> Result<T, CheckpointError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|error| json_error(file, &error))
}

/// What a value that was changed since it was read says.
pub(crate) fn from_value<T: DeserializeOwned>(
    file: &str,
    value: Value,
) -> Result<T, CheckpointError> {
    serde_json::from_value(value).map_err(|error| json_error(file, &error))
}

/// The bytes of a value, without white space.
pub(crate) fn write<T: Serialize>(file: &str, value: &T) -> Result<Vec<u8>, CheckpointError> {
    serde_json::to_vec(value).map_err(|error| json_error(file, &error))
}

/// The text of a value, indented, with a line's end.
pub(crate) fn write_text<T: Serialize>(file: &str, value: &T) -> Result<String, CheckpointError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| json_error(file, &error))?;
    Ok(text + "\n")
}

fn json_error(file: &str, error: &serde_json::Error) -> CheckpointError {
    let text = error.to_string();
    let (line, column) = (error.line(), error.column());
    let place = format!(" at line {line} column {column}");
    let what = text.strip_suffix(&place).unwrap_or(&text).to_owned();
    CheckpointError::Json { file: file.to_owned(), line, column, what }
}

/// An object's members in file order, repeated names included (which a map would swallow).
pub(crate) struct Pairs<V>(pub(crate) Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for PairsVisitor<V> {
    type Value = Pairs<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

/// The fields of an object. A repeated name counts where it stands last, as in Python; null
/// counts as absent.
pub(crate) struct Fields<'a> {
    file: &'a str,
    path: String, // of the object within the file, with a point behind it
    map: Option<&'a Map<String, Value>>,
}

impl<'a> Fields<'a> {
    /// The fields of a file's outermost object.
    pub(crate) fn new(file: &'a str, map: &'a Map<String, Value>) -> Self {
        Self { file, path: String::new(), map: Some(map) }
    }

    /// Name of the file.
    pub(crate) fn file(&self) -> &'a str {
        self.file
    }

    /// Whether the field is there, be it null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.is_some_and(|map| map.contains_key(key))
    }

    /// Whether the field is there and neither null nor false.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        let value = self.map.and_then(|map| map.get(key));
        !matches!(value, None | Some(Value::Null | Value::Bool(false)))
    }

    /// Whether the field is a string.
    pub(crate) fn is_text(&self, key: &str) -> bool {
        self.map.and_then(|map| map.get(key)).is_some_and(Value::is_string)
    }

    /// Whether the object itself is there.
    pub(crate) fn is_present(&self) -> bool {
        self.map.is_some()
    }

    /// Names of all fields.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.map.into_iter().flat_map(|map| map.keys().map(String::as_str))
    }

    /// The fields of an object within; all absent where it is.
    pub(crate) fn object(&self, key: &str) -> Result<Self, CheckpointError> {
        let map = self.get(key, "an object", Value::as_object)?;
        Ok(Self { file: self.file, path: format!("{}{key}.", self.path), map })
    }

    /// A whole number of `1..=limit`.
    pub(crate) fn size(&self, key: &str, limit: usize) -> Result<Option<usize>, CheckpointError> {
        self.get(key, &format!("a whole number from 1 to {limit}"), |value| {
            let size = usize::try_from(value.as_u64()?).ok()?;
            (1..=limit).contains(&size).then_some(size)
        })
    }

    /// A finite number, of which `accept` holds.
    pub(crate) fn number(
        &self,
        key: &str,
        expected: &str,
        accept: impl Fn(f64) -> bool,
    ) -> Result<Option<f64>, CheckpointError> {
        self.get(key, expected, |value| {
            value.as_f64().filter(|number| number.is_finite() && accept(*number))
        })
    }

    /// True or false.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, CheckpointError> {
        self.get(key, "true or false", Value::as_bool)
    }

    /// A string.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, CheckpointError> {
        self.get(key, "a string", Value::as_str)
    }

    /// An array of strings.
    pub(crate) fn texts(&self, key: &str) -> Result<Option<Vec<&'a str>>, CheckpointError> {
        self.get(key, "a list of strings", |value| {
            value.as_array()?.iter().map(Value::as_str).collect()
        })
    }

    /// Token ids: one, or a list.
    pub(crate) fn tokens(&self, key: &str) -> Result<Option<Vec<u32>>, CheckpointError> {
        let token = |value: &Value| u32::try_from(value.as_u64()?).ok();
        self.get(key, "a token id or a list of them", |value| match value {
            Value::Array(values) => values.iter().map(token).collect(),
            value => Some(vec![token(value)?]),
        })
    }

    /// What `read` makes of a field, or `None` where it is absent or null.
    pub(crate) fn get<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, CheckpointError> {
        match self.map.and_then(|map| map.get(key)) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match read(value) {
                Some(read) => Ok(Some(read)),
                None => Err(self.error(key, expected, &value.to_string())),
            },
        }
    }

    /// The error for a field that must be there.
    pub(crate) fn absent(&self, key: &str, expected: &str) -> CheckpointError {
        self.error(key, expected, "absent")
    }

    /// The error for a field's value, which is cut where it is long.
    pub(crate) fn error(&self, key: &str, expected: &str, found: &str) -> CheckpointError {
        const SHOWN: usize = 60;
        let mut shown: String = found.chars().take(SHOWN).collect();
        if shown.len() < found.len() {
            shown.push('…');
        }
        CheckpointError::field(self.file, format!("{}{key}", self.path), expected, shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_file_and_place() {
        let error = read::<Map<String, Value>>("config.json", b"{\n  \"a\": 1,\n}").err().unwrap();
        assert_eq!(error.to_string(), "config.json, line 3, column 1: trailing comma");
        let map: Map<_, _> = read("c", br#"{"a": {"b": -1, "n": null}}"#).unwrap();
        let fields = Fields::new("c", &map).object("a").unwrap();
        assert_eq!(
            fields.size("b", 7).unwrap_err().to_string(),
            "c: `a.b` is -1, expected a whole number from 1 to 7"
        );
        assert_eq!(fields.size("n", 7), Ok(None));
        assert!(fields.has("n") && !fields.has("m"));
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        let map: Map<String, Value> = read("c", b"\xef\xbb\xbf{\"a\": 1}").unwrap();
        assert_eq!(map["a"], 1);
        assert!(read::<Value>("c", b"\xef\xbb\xbf\xef\xbb\xbf{}").is_err(), "there is one");
    }

    #[test]
    fn pairs_keep_repeated_names() {
        let pairs: Pairs<u8> = read("c", br#"{"a": 1, "a": 2}"#).unwrap();
        assert_eq!(pairs.0, [("a".to_owned(), 1), ("a".to_owned(), 2)]);
    }
}

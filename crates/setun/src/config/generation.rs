//! The table `[generation]`: defaults of the options of generations.

use std::fmt;

use serde::{
    de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor},
    ser::{SerializeMap, Serializer},
};
use setun_engine::GenerateOptions;
use setun_text::{OptionSpec, OptionValue};

/// Reads the table; an error has the line of the key or the value that is wrong.
pub(super) fn deserialize<'de, D>(deserializer: D) -> Result<GenerateOptions, D::Error>
where
    D: Deserializer<'de>,
{
    deserializer.deserialize_map(TableVisitor)
}

/// Writes the options that are given and that a file can hold.
pub(super) fn serialize<S>(options: &GenerateOptions, serializer: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
{
    let mut map = serializer.serialize_map(None)?;
    for spec in offered() {
        if let Some(value) = options.get(spec.name) {
            map.serialize_entry(spec.name, &value)?;
        }
    }
    map.end()
}

fn offered() -> impl Iterator<Item = &'static OptionSpec> {
    GenerateOptions::SPECS.iter().filter(|spec| spec.in_toml)
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = GenerateOptions;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<GenerateOptions, A::Error> {
        let mut options = GenerateOptions::new();
        while let Some(Name(name)) = map.next_key()? {
            map.next_value_seed(Setter { options: &mut options, name })?;
        }
        Ok(options)
    }
}

/// The name of an option that a file can hold.
struct Name(&'static str);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = String::deserialize(deserializer)?;
        let spec = offered().find(|spec| spec.name == found);
        spec.map(|spec| Self(spec.name)).ok_or_else(|| {
            let known: Vec<_> = offered().map(|spec| spec.name).collect();
            let known = known.join(", ");
            D::Error::custom(format!("unknown option `{found}`, expected one of {known}"))
        })
    }
}

/// Sets an option to the value that it reads.
struct Setter<'a> {
    options: &'a mut GenerateOptions,
    name: &'static str,
}

impl<'de> DeserializeSeed<'de> for Setter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let value = OptionValue::deserialize(deserializer)?;
        self.options.set(self.name, &value).map_err(D::Error::custom)
    }
}

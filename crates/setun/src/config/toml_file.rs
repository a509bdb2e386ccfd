//! Configurations in TOML, by the option tables.

use std::{collections::BTreeMap, fmt, path::Path};

use serde::{
    de::{
        Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny,
        MapAccess, Visitor,
    },
    ser::{Serialize, Serializer},
};
use setun_engine::GenerateOptions;
use setun_text::{OptionGroup, OptionSpec, OptionValue};

use super::EngineConfig;
use crate::error::Error;

/// Most bytes of a file.
const MAX_BYTES: u64 = 16 << 20;

impl EngineConfig {
    /// Reads a file of TOML.
    ///
    /// # Errors
    ///
    /// If it cannot be read, and as [`from_toml`](Self::from_toml).
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let config: Self = read_toml(path)?;
        config.check()?;
        Ok(config)
    }

    /// Reads TOML.
    ///
    /// # Errors
    ///
    /// If it is no TOML, has a key that is not known or a value that its option does not take; the
    /// error names the line.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        let config: Self = parse(text, "TOML")?;
        config.check()?;
        Ok(config)
    }

    fn get(&self, name: &str) -> Option<OptionValue> {
        let engine = self.engine.get(name).or_else(|| self.device.get(name));
        engine.or_else(|| self.generation.get(name))
    }
}

/// Reads a file of TOML into any value, such as the tables of a program beside those of an
/// [`EngineConfig`].
///
/// # Errors
///
/// If it cannot be read, is no TOML or no such value; the error names the line.
pub fn read_toml<T: DeserializeOwned>(path: impl AsRef<Path>) -> Result<T, Error> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let text = String::from_utf8(crate::read_file(path, MAX_BYTES)?).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        Error::Config { file: file.clone(), line, reason: "it is not UTF-8".into() }
    })?;
    parse(&text, &file)
}

fn parse<T: DeserializeOwned>(text: &str, file: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        Error::Config { file: file.into(), line, reason: error.message().into() }
    })
}

/// The table of a server, which `setun serve` reads by itself.
const SERVE: &str = "serve";

/// The tables of a file, in order.
fn tables() -> impl Iterator<Item = &'static str> {
    let tables = OptionGroup::ALL.into_iter().filter_map(OptionGroup::toml_table);
    let mut last = None;
    tables.filter(move |table| last.replace(*table) != Some(*table))
}

/// The options of a table.
fn options(table: &str) -> impl Iterator<Item = &'static OptionSpec> {
    let specs = EngineConfig::specs().chain(GenerateOptions::SPECS);
    specs.filter(move |spec| spec.toml_table() == Some(table))
}

impl Serialize for EngineConfig {
    /// Writes the options that have a value and that a file can hold.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = |table| -> (_, BTreeMap<_, _>) {
            let value = |spec: &OptionSpec| Some((spec.name, self.get(spec.name)?));
            (table, options(table).filter_map(value).collect())
        };
        serializer.collect_map(tables().map(table))
    }
}

impl<'de> Deserialize<'de> for EngineConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut config = Self::default();
        deserializer.deserialize_map(FileVisitor(&mut config))?;
        Ok(config)
    }
}

/// Reads the tables of a file; an error has the line of the key or the value that is wrong.
struct FileVisitor<'a>(&'a mut EngineConfig);

impl<'de> Visitor<'de> for FileVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("tables of options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let known: Vec<_> = tables().chain([SERVE]).collect();
        while let Some(table) = map.next_key_seed(Key { what: "table", known: &known })? {
            if table == SERVE {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            map.next_value_seed(Table { config: &mut *self.0, table })?;
        }
        Ok(())
    }
}

/// Reads the options of a table.
struct Table<'a> {
    config: &'a mut EngineConfig,
    table: &'static str,
}

impl<'de> DeserializeSeed<'de> for Table<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Table<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of options")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let known: Vec<_> = options(self.table).map(|spec| spec.name).collect();
        while let Some(name) = map.next_key_seed(Key { what: "option", known: &known })? {
            map.next_value_seed(Setter { config: &mut *self.config, table: self.table, name })?;
        }
        Ok(())
    }
}

/// Reads one of the names that are known.
struct Key<'a> {
    what: &'static str,
    known: &'a [&'static str],
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        let Self { what, known } = self;
        let found = String::deserialize(deserializer)?;
        known.iter().find(|name| **name == found).copied().ok_or_else(|| {
            let known = known.join(", ");
            D::Error::custom(format!("unknown {what} `{found}`, expected one of {known}"))
        })
    }
}

/// Sets an option to the value that it reads.
struct Setter<'a> {
    config: &'a mut EngineConfig,
    table: &'static str,
    name: &'static str,
}

impl<'de> DeserializeSeed<'de> for Setter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Self { config, table, name } = self;
        let value = OptionValue::deserialize(deserializer)?;
        let set = match table {
            "generation" => config.generation.set(name, &value),
            _ => config.set(name, &value),
        };
        set.map_err(D::Error::custom)
    }
}

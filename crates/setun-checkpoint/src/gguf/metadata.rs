//! The metadata of a file: keys, and values of thirteen types.

use std::collections::BTreeMap;

use super::cursor::{Cursor, Stop};
use crate::error::CheckpointError;

/// A value. Integers and floats are widened; what types they had is not kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Integer(i128),
    Float(f64),
    Flag(bool),
    Text(String),
    Integers(Vec<i64>),
    Floats(Vec<f32>),
    Texts(Vec<String>),
    Flags(Vec<bool>),
    /// Of a kind that nothing here needs: `f64`.
    Other,
}

const TEXT: u32 = 8;
const ARRAY: u32 = 9;

/// Reads a value of a type.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Value, Stop> {
    let kind = cursor.u32()?;
    match kind {
        TEXT => Ok(Value::Text(cursor.text()?.to_owned())),
        ARRAY => read_array(cursor),
        _ => {
            let size = size(kind).ok_or_else(|| unknown(cursor, kind))?;
            let bytes = cursor.take(size)?;
            match kind {
                7 if bytes[0] > 1 => Err(cursor.bad(format!("a flag is {}", bytes[0]))),
                7 => Ok(Value::Flag(bytes[0] == 1)),
                6 | 12 => Ok(Value::Float(float(bytes))),
                _ => Ok(Value::Integer(integer(kind, bytes))),
            }
        }
    }
}

fn read_array(cursor: &mut Cursor<'_>) -> Result<Value, Stop> {
    let (kind, length) = (cursor.u32()?, cursor.u64()?);
    if kind == ARRAY {
        return Err(cursor.bad("a list of lists, which no reader knows"));
    }
    if kind == TEXT {
        let mut texts = Vec::new(); // grows as they arrive
        for _ in 0..length {
            texts.push(cursor.text()?.to_owned());
        }
        return Ok(Value::Texts(texts));
    }
    let size = size(kind).ok_or_else(|| unknown(cursor, kind))?;
    let bytes = cursor.take(length.saturating_mul(size))?;
    let size = usize::try_from(size).unwrap_or(1);
    let values = bytes.chunks_exact(size);
    Ok(match kind {
        6 => Value::Floats(bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()),
        7 => match bytes.iter().find(|flag| **flag > 1) {
            Some(flag) => return Err(cursor.bad(format!("a flag is {flag}"))),
            None => Value::Flags(bytes.iter().map(|flag| *flag == 1).collect()),
        },
        12 => Value::Other,
        _ => {
            let narrow = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
            Value::Integers(values.map(|bytes| narrow(integer(kind, bytes))).collect())
        }
    })
}

fn unknown(cursor: &Cursor<'_>, kind: u32) -> Stop {
    cursor.bad(format!("a value has the unknown type {kind}, expected 0 to 12"))
}

/// Bytes of a value of a type that has a fixed size.
fn size(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

fn integer(kind: u32, bytes: &[u8]) -> i128 {
    const SIGNED: [u32; 4] = [1, 3, 5, 11];
    let top = bytes.last().copied().unwrap_or(0);
    let fill = if SIGNED.contains(&kind) && top >= 0x80 { 0xff } else { 0 };
    let mut wide = [fill; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

fn float(bytes: &[u8]) -> f64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    match bytes.len() {
        4 => f64::from(f32::from_le_bytes([wide[0], wide[1], wide[2], wide[3]])),
        _ => f64::from_le_bytes(wide),
    }
}

/// All of a file's metadata.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) file: String,
    pub(crate) values: BTreeMap<String, Value>,
}

impl Metadata {
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// A whole number of `0..=limit`; of a list (one number a layer) the one that all are.
    pub(super) fn size(&self, key: &str, limit: usize) -> Result<Option<usize>, CheckpointError> {
        self.read(key, &format!("a whole number from 0 to {limit}"), |value| {
            let number = match value {
                Value::Integer(number) => *number,
                Value::Integers(numbers) => {
                    let first = *numbers.first()?;
                    numbers.iter().all(|number| *number == first).then_some(i128::from(first))?
                }
                _ => return None,
            };
            usize::try_from(number).ok().filter(|size| *size <= limit)
        })
    }

    /// The id of a token; −1 stands for none.
    pub(super) fn token(&self, key: &str) -> Result<Option<u32>, CheckpointError> {
        const NONE: [i128; 2] = [-1, 0xffff_ffff];
        let token = self.read(key, "a token id", |value| match value {
            Value::Integer(number) if NONE.contains(number) => Some(None),
            Value::Integer(number) => u32::try_from(*number).ok().map(Some),
            _ => None,
        });
        Ok(token?.flatten())
    }

    /// A finite number.
    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, CheckpointError> {
        self.read(key, "a finite number", |value| match value {
            Value::Float(number) if number.is_finite() => Some(*number),
            Value::Integer(number) => i32::try_from(*number).ok().map(f64::from),
            _ => None,
        })
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, CheckpointError> {
        self.read(key, "true or false", |value| match value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        })
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, CheckpointError> {
        self.read(key, "a text", |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Takes a list of texts out, none where there is no such key.
    pub(super) fn take_texts(&mut self, key: &str) -> Result<Vec<String>, CheckpointError> {
        match self.values.remove(key) {
            None => Ok(vec![]),
            Some(Value::Texts(texts)) => Ok(texts),
            Some(other) => Err(self.error(key, "a list of texts", &describe(&other))),
        }
    }

    /// A list of whole numbers, none where there is no such key.
    pub(super) fn integers(&self, key: &str) -> Result<&[i64], CheckpointError> {
        let found = self.read(key, "a list of whole numbers", |value| match value {
            Value::Integers(numbers) => Some(numbers.as_slice()),
            _ => None,
        });
        Ok(found?.unwrap_or_default())
    }

    /// A list of flags.
    pub(super) fn flags(&self, key: &str) -> Result<Option<&[bool]>, CheckpointError> {
        self.read(key, "a list of flags", |value| match value {
            Value::Flags(flags) => Some(flags.as_slice()),
            _ => None,
        })
    }

    /// Takes a list of `f32` out, none where there is no such key.
    pub(super) fn take_floats(&mut self, key: &str) -> Result<Vec<f32>, CheckpointError> {
        match self.values.remove(key) {
            None => Ok(vec![]),
            Some(Value::Floats(numbers)) => Ok(numbers),
            Some(other) => Err(self.error(key, "a list of numbers", &describe(&other))),
        }
    }

    fn read<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, CheckpointError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let error = || self.error(key, expected, &describe(value));
        read(value).map(Some).ok_or_else(error)
    }

    /// The error for a key's value.
    pub(super) fn error(&self, key: &str, expected: &str, found: &str) -> CheckpointError {
        CheckpointError::field(&self.file, key, expected, found)
    }

    /// The error for a key that must be there.
    pub(super) fn absent(&self, key: &str, expected: &str) -> CheckpointError {
        self.error(key, expected, "absent")
    }
}

fn describe(value: &Value) -> String {
    const SHOWN: usize = 60;
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Text(text) => format!("\"{}\"", text.chars().take(SHOWN).collect::<String>()),
        Value::Integers(list) => format!("a list of {} whole numbers", list.len()),
        Value::Floats(list) => format!("a list of {} numbers", list.len()),
        Value::Texts(list) => format!("a list of {} texts", list.len()),
        Value::Flags(list) => format!("a list of {} flags", list.len()),
        Value::Other => "of another type".to_owned(),
    }
}

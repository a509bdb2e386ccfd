//! Values of options as a file, a command line or JavaScript gives them.

use std::{collections::BTreeMap, fmt};

use serde::{
    de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor},
    ser::{Serialize, Serializer},
};

use crate::SamplingStep;

/// Up to here a 64-bit float has every integer.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A value before it is checked against its [`OptionKind`](super::OptionKind).
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// True or false.
    Flag(bool),
    /// An integer.
    Integer(i128),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// Values by name.
    Map(Vec<(String, Self)>),
}

impl OptionValue {
    /// As a number of single precision; one that is too large is infinite.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "options are numbers of single precision"
    )]
    #[must_use]
    pub fn number(&self) -> Option<f32> {
        match self {
            Self::Integer(number) => Some(*number as f32),
            Self::Number(number) => Some(*number as f32),
            _ => None,
        }
    }

    /// As a number of double precision.
    #[expect(clippy::cast_precision_loss, reason = "a number may be rounded")]
    #[must_use]
    pub fn double(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The value as an integer, which may be written with a fraction of zero as long as that is exact.
    #[expect(clippy::cast_possible_truncation, reason = "a whole number in range")]
    #[must_use]
    pub fn integer(&self) -> Option<i128> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Number(number) if number.fract() == 0.0 && number.abs() <= MAX_EXACT => {
                Some(*number as i128)
            }
            _ => None,
        }
    }

    /// As a text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// As the name of a variant; JavaScript has flags for some.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Flag(true) => Some("true"),
            Self::Flag(false) => Some("false"),
            _ => None,
        }
    }

    /// As the id of a token.
    #[must_use]
    pub fn token(&self) -> Option<u32> {
        self.integer().and_then(|token| u32::try_from(token).ok())
    }

    /// The values of a list, each read by `read`; none if it is no list or one cannot be read.
    pub fn list<'a, T>(&'a self, read: impl Fn(&'a Self) -> Option<T>) -> Option<Vec<T>> {
        if let Self::List(values) = self { values.iter().map(read).collect() } else { None }
    }

    /// As sampling steps.
    #[must_use]
    pub fn steps(&self) -> Option<Vec<SamplingStep>> {
        self.list(|step| step.text()?.parse().ok())
    }

    /// As finite numbers by the ids of tokens.
    #[must_use]
    pub fn biases(&self) -> Option<BTreeMap<u32, f32>> {
        let Self::Map(values) = self else { return None };
        let bias = |(token, bias): &(String, Self)| {
            Some((token.parse().ok()?, bias.number().filter(|bias| bias.is_finite())?))
        };
        values.iter().map(bias).collect()
    }

    pub(super) fn all(&self, accepts: impl Fn(&Self) -> bool) -> bool {
        matches!(self, Self::List(values) if values.iter().all(accepts))
    }
}

impl From<f32> for OptionValue {
    fn from(number: f32) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for OptionValue {
    fn from(number: usize) -> Self {
        Self::Integer(number as i128)
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(formatter),
            Self::Integer(number) => number.fmt(formatter),
            Self::Number(number) => match self.number() {
                // One that is no integer here for its size shows that it has a fraction.
                _ if number.abs() > MAX_EXACT => write!(formatter, "{number:?}"),
                Some(single) if f64::from(single) == *number => single.fmt(formatter),
                _ => number.fmt(formatter),
            },
            Self::Text(text) => write!(formatter, "`{text}`"),
            Self::List(values) => {
                formatter.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(formatter, "{comma}{value}")?;
                }
                formatter.write_str("]")
            }
            Self::Map(_) => formatter.write_str("an object"),
        }
    }
}

impl Serialize for OptionValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Integer(number) => match i64::try_from(*number) {
                Ok(number) => serializer.serialize_i64(number),
                Err(_) => serializer.serialize_i128(*number),
            },
            Self::Number(number) => match self.number() {
                Some(single) if f64::from(single) == *number => serializer.serialize_f32(single),
                _ => serializer.serialize_f64(*number),
            },
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(values) => serializer.collect_seq(values),
            Self::Map(values) => {
                serializer.collect_map(values.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for OptionValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = OptionValue;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, a text, true or false, a list, or values by name")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<OptionValue, E> {
        Ok(OptionValue::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<OptionValue, E> {
        Ok(OptionValue::Integer(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<OptionValue, E> {
        Ok(OptionValue::Integer(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<OptionValue, E> {
        Ok(OptionValue::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<OptionValue, E> {
        Ok(OptionValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OptionValue, A::Error> {
        let mut values = vec![];
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(OptionValue::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OptionValue, A::Error> {
        let mut values = vec![];
        while let Some(entry) = map.next_entry()? {
            values.push(entry);
        }
        Ok(OptionValue::Map(values))
    }
}

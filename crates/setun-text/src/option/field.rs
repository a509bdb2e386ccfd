//! Fields of option tables, read from values and written to them.

use std::{collections::BTreeMap, time::Duration};

use super::OptionValue;
use crate::SamplingStep;

/// A field of an option table: a value, if one is given.
pub trait OptionField {
    /// The type of the value.
    type Value: FieldValue;

    /// What is given.
    fn given(&self) -> Option<&Self::Value>;

    /// Gives a value.
    fn give(&mut self, value: Self::Value);
}

/// The value of a field.
pub trait FieldValue: Clone {
    /// Reads a value that the option's kind accepts. None where each surface makes its own.
    fn read(value: &OptionValue) -> Option<Self>;

    /// The value that [`read`](Self::read) reads; none where there is none.
    fn write(&self) -> Option<OptionValue>;
}

/// An [`OptionField`] of any type: one function serves all options, which keeps WebAssembly small.
pub trait AnyField {
    /// Reads a value that the option's kind accepts; false where each surface makes its own.
    fn fill(&mut self, value: &OptionValue) -> bool;

    /// The value, if one is given that can be read again.
    fn write(&self) -> Option<OptionValue>;
}

impl<F: OptionField> AnyField for F {
    fn fill(&mut self, value: &OptionValue) -> bool {
        F::Value::read(value).map(|value| self.give(value)).is_some()
    }

    fn write(&self) -> Option<OptionValue> {
        self.given().and_then(FieldValue::write)
    }
}

/// Takes a default, if nothing is given.
pub fn fill_default<F: OptionField>(field: &mut F, default: &F) {
    if let (None, Some(value)) = (field.given(), default.given()) {
        field.give(value.clone());
    }
}

impl<T: FieldValue> OptionField for Option<T> {
    type Value = T;

    fn given(&self) -> Option<&T> {
        self.as_ref()
    }

    fn give(&mut self, value: T) {
        *self = Some(value);
    }
}

impl<T: FieldValue> OptionField for Vec<T> {
    type Value = Self;

    fn given(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }

    fn give(&mut self, value: Self) {
        *self = value;
    }
}

impl OptionField for BTreeMap<u32, f32> {
    type Value = Self;

    fn given(&self) -> Option<&Self> {
        (!self.is_empty()).then_some(self)
    }

    fn give(&mut self, value: Self) {
        *self = value;
    }
}

/// A field that always has a value: one is read, and nothing is filled in.
macro_rules! always_given {
    ($($type:ty),*) => {$(
        impl OptionField for $type {
            type Value = Self;

            fn given(&self) -> Option<&Self> {
                Some(self)
            }

            fn give(&mut self, value: Self) {
                *self = value;
            }
        }
    )*};
}

always_given!(usize, f32, f64, bool, Duration);

impl<T: FieldValue> FieldValue for Vec<T> {
    fn read(value: &OptionValue) -> Option<Self> {
        value.list(T::read)
    }

    fn write(&self) -> Option<OptionValue> {
        self.iter().map(T::write).collect::<Option<_>>().map(OptionValue::List)
    }
}

impl FieldValue for BTreeMap<u32, f32> {
    fn read(value: &OptionValue) -> Option<Self> {
        value.biases()
    }

    fn write(&self) -> Option<OptionValue> {
        let bias = |(token, bias): (&u32, &f32)| (token.to_string(), OptionValue::from(*bias));
        Some(OptionValue::Map(self.iter().map(bias).collect()))
    }
}

impl FieldValue for f32 {
    fn read(value: &OptionValue) -> Option<Self> {
        value.number()
    }

    fn write(&self) -> Option<OptionValue> {
        Some((*self).into())
    }
}

impl FieldValue for f64 {
    fn read(value: &OptionValue) -> Option<Self> {
        value.double()
    }

    fn write(&self) -> Option<OptionValue> {
        Some(OptionValue::Number(*self))
    }
}

impl FieldValue for bool {
    fn read(value: &OptionValue) -> Option<Self> {
        if let OptionValue::Flag(flag) = value { Some(*flag) } else { None }
    }

    fn write(&self) -> Option<OptionValue> {
        Some(OptionValue::Flag(*self))
    }
}

impl FieldValue for usize {
    /// Counts beyond those that the machine has are the largest.
    fn read(value: &OptionValue) -> Option<Self> {
        value.integer().map(|count| Self::try_from(count).unwrap_or(Self::MAX))
    }

    fn write(&self) -> Option<OptionValue> {
        Some((*self).into())
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl FieldValue for $type {
            fn read(value: &OptionValue) -> Option<Self> {
                value.integer()?.try_into().ok()
            }

            fn write(&self) -> Option<OptionValue> {
                Some(OptionValue::Integer((*self).into()))
            }
        }
    )*};
}

integers!(u32, i32, u64);

impl FieldValue for Duration {
    fn read(value: &OptionValue) -> Option<Self> {
        Self::try_from_secs_f64(value.double()?).ok()
    }

    fn write(&self) -> Option<OptionValue> {
        Some(OptionValue::Number(self.as_secs_f64()))
    }
}

impl FieldValue for String {
    fn read(value: &OptionValue) -> Option<Self> {
        value.text().map(str::to_owned)
    }

    fn write(&self) -> Option<OptionValue> {
        Some(OptionValue::Text(self.clone()))
    }
}

impl FieldValue for SamplingStep {
    fn read(value: &OptionValue) -> Option<Self> {
        value.text()?.parse().ok()
    }

    fn write(&self) -> Option<OptionValue> {
        Some(OptionValue::Text(self.name().to_owned()))
    }
}

/// Reads and writes nothing: each surface makes the value in its own way.
#[macro_export]
macro_rules! structured_options {
    ($($type:ty),*) => {$(
        impl $crate::FieldValue for $type {
            fn read(_: &$crate::OptionValue) -> Option<Self> {
                None
            }

            fn write(&self) -> Option<$crate::OptionValue> {
                None
            }
        }
    )*};
}

structured_options!(serde_json::Map<String, serde_json::Value>);

/// Gives the variants of an enum the names that every interface has for them.
#[macro_export]
macro_rules! named_options {
    ($type:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        impl $type {
            /// The names of all variants.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The name in every interface.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.name())
            }
        }

        impl $crate::FieldValue for $type {
            fn read(value: &$crate::OptionValue) -> Option<Self> {
                match value.name()? {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            fn write(&self) -> Option<$crate::OptionValue> {
                Some($crate::OptionValue::Text(self.name().to_owned()))
            }
        }

        impl $crate::OptionField for $type {
            type Value = Self;

            fn given(&self) -> Option<&Self> {
                Some(self)
            }

            fn give(&mut self, value: Self) {
                *self = value;
            }
        }
    };
}

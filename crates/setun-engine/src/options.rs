//! Options of a generation.

mod sampling;
mod table;
mod value;

use std::{collections::BTreeMap, time::Duration};

use setun_text::{
    LogitsProcessor, Message, OptionGroup, OptionKind, OptionSpec, OptionValue, SamplingStep,
    SharedFilter, SharedProcessor,
};

use crate::{constraint::SharedConstraint, context::SharedContextStrategy, error::Error};

pub(crate) use sampling::Meaning;
use table::{generate_options, join};
use value::{AnyField, refused};

macro_rules! define_options {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $field:ident<$($inner:ty),*> as $kind:ident $(($($argument:tt)*))?
        = $default:literal, $value:literal, $group:ident
        $(, $modifier:ident $(($words:literal))?)*;
    )*) => {
        /// Options of a generation. What is not given has its default.
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct GenerateOptions {
            $(
                $(#[doc = $doc])*
                ///
                #[doc = concat!(
                    "Takes [`", stringify!($kind), "`](setun_text::OptionKind::", stringify!($kind),
                    "). Default: ", $default, "."
                )]
                pub $name: $field<$($inner),*>,
            )*
        }

        impl GenerateOptions {
            /// The names of all options.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// The kinds of all options, in the order of their names.
            const KINDS: &[OptionKind] = &[$(OptionKind::$kind $(($($argument)*))?),*];

            fn fields(&self) -> [&dyn AnyField; Self::NAMES.len()] {
                [$(&self.$name),*]
            }

            fn fields_mut(&mut self) -> [&mut dyn AnyField; Self::NAMES.len()] {
                [$(&mut self.$name),*]
            }

            /// Takes from `defaults` what is not given.
            #[must_use]
            pub fn or(mut self, defaults: &Self) -> Self {
                $(value::fill_default(&mut self.$name, &defaults.$name);)*
                self
            }

            $(setter!($name: $field<$($inner),*>);)*
        }

        /// All options of a generation, with what every surface says of them.
        pub const OPTIONS: &[OptionSpec] = &[$(
            OptionSpec::new(
                stringify!($name),
                OptionKind::$kind $(($($argument)*))?,
                concat!($default),
                $value,
                OptionGroup::$group,
                concat!($($doc, "\n"),*),
            )$(.$modifier($($words)?))*,
        )*];
    };
}

/// The setter of an option that may be absent; those of lists are below.
macro_rules! setter {
    ($name:ident: Option<$type:ty>) => {
        #[doc = concat!("Sets [`", stringify!($name), "`](Self::", stringify!($name), ").")]
        #[must_use]
        pub fn $name(mut self, value: $type) -> Self {
            self.$name = Some(value);
            self
        }
    };
    ($name:ident: $list:ident<$($type:ty),*>) => {};
}

generate_options!(define_options);

impl GenerateOptions {
    /// Every option as the engine and the model have it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a [stop string](Self::stop).
    #[must_use]
    pub fn stop(mut self, stop: impl Into<String>) -> Self {
        self.stop.push(stop.into());
        self
    }

    /// Adds a string to [`ban`](Self::ban).
    #[must_use]
    pub fn ban(mut self, text: impl Into<String>) -> Self {
        self.ban.push(text.into());
        self
    }

    /// Sets [`logit_bias`](Self::logit_bias).
    #[must_use]
    pub fn logit_bias(mut self, biases: impl Into<BTreeMap<u32, f32>>) -> Self {
        self.logit_bias = biases.into();
        self
    }

    /// Sets [`banned_tokens`](Self::banned_tokens).
    #[must_use]
    pub fn banned_tokens(mut self, tokens: impl Into<Vec<u32>>) -> Self {
        self.banned_tokens = tokens.into();
        self
    }

    /// Sets [`sampling_order`](Self::sampling_order).
    #[must_use]
    pub fn sampling_order(mut self, steps: impl Into<Vec<SamplingStep>>) -> Self {
        self.sampling_order = steps.into();
        self
    }

    /// Adds a custom step to [`processors`](Self::processors).
    #[must_use]
    pub fn processor(mut self, processor: impl LogitsProcessor + 'static) -> Self {
        self.processors.push(SharedProcessor::new(processor));
        self
    }

    /// Sets an option by its name.
    ///
    /// # Errors
    ///
    /// If there is none of this name, or it does not take the value.
    pub fn set(&mut self, name: &str, value: &OptionValue) -> Result<(), Error> {
        let options = Self::NAMES.iter().zip(Self::KINDS);
        for ((option, kind), field) in options.zip(self.fields_mut()) {
            if *option == name {
                let is_taken = kind.accepts(value) && field.fill(value);
                return if is_taken { Ok(()) } else { Err(refused(option, *kind, value)) };
            }
        }
        Err(Error::UnknownOption { name: name.to_owned() })
    }

    /// The value of an option, if it is given and [`set`](Self::set) takes it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<OptionValue> {
        let mut options = Self::NAMES.iter().zip(self.fields());
        options.find(|(option, _)| **option == name).and_then(|(_, field)| field.write())
    }

    /// Checks the value of each option.
    fn check_values(&self) -> Result<(), Error> {
        let options = Self::NAMES.iter().zip(Self::KINDS);
        for ((option, kind), field) in options.zip(self.fields()) {
            if let Some(value) = field.write()
                && !kind.accepts(&value)
            {
                return Err(refused(option, *kind, &value));
            }
        }
        Ok(())
    }

    /// Checks every value, and those that depend on each other.
    ///
    /// # Errors
    ///
    /// If one is out of its range; the error names it.
    pub fn check(&self) -> Result<(), Error> {
        self.check_values()?;
        match (self.min_tokens, self.max_tokens) {
            (Some(min), Some(max)) if min > max => Err(Error::BadOption {
                option: "min_tokens",
                found: min.to_string(),
                expected: "no more than max_tokens".into(),
            }),
            _ => Ok(()),
        }
    }
}

/// What a generation starts from.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    /// Text; special tokens are added as the tokenizer's post-processor says.
    Text(String),
    /// Tokens as they are.
    Tokens(Vec<u32>),
    /// A conversation, rendered by the model's own template.
    Chat(Vec<Message>),
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u32>> for Prompt {
    fn from(tokens: Vec<u32>) -> Self {
        Self::Tokens(tokens)
    }
}

impl From<Vec<Message>> for Prompt {
    fn from(messages: Vec<Message>) -> Self {
        Self::Chat(messages)
    }
}

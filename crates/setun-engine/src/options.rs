//! Options of a generation.

mod back_pressure;
mod engine;
mod list_bounds;
mod reasoning_effort;
mod sampling;
mod table;

use std::{collections::BTreeMap, time::Duration};

use setun_text::{
    Message, SamplingStep, SharedFilter, SharedProcessor, TemplateVariables, Tool, ToolChoice,
    fill_default, option_table, structured_options,
};

use crate::{constraint::SharedConstraint, context::SharedContextStrategy, error::Error};

pub use back_pressure::BackPressure;
pub use engine::EngineOptions;
pub use list_bounds::ListBound;
pub use reasoning_effort::ReasoningEffort;
pub(crate) use sampling::Meaning;
use table::{generate_options, join};

generate_options!(option_table! {
    /// Options of a generation. What is not given has its default.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct GenerateOptions;
});

macro_rules! define_or {
    ($(
        $(#[$doc:meta])*
        $name:ident: $field:ident<$($inner:ty),*> as $kind:ident $(($($argument:tt)*))?
        = $default:literal, $value:literal, $group:ident
        $(, $modifier:ident $(($words:literal))?)*;
    )*) => {
        impl GenerateOptions {
            /// Takes from `defaults` what is not given.
            #[must_use]
            pub fn or(mut self, defaults: &Self) -> Self {
                $(fill_default(&mut self.$name, &defaults.$name);)*
                self
            }
        }
    };
}

generate_options!(define_or! {});
structured_options!(SharedContextStrategy, SharedConstraint);

/// Variables of chat templates that options or prompts give.
const OWN_VARIABLES: [&str; 3] = ["messages", "tools", "add_generation_prompt"];

impl GenerateOptions {
    /// Every option as the engine and the model have it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the model is to think, if anything says so.
    pub(crate) fn thinks(&self) -> Option<bool> {
        let by_effort = self.reasoning_effort.map(|effort| effort != ReasoningEffort::None);
        let by_budget = (self.max_thinking_tokens == Some(0)).then_some(false);
        self.enable_thinking.or(by_budget).or(by_effort)
    }

    /// Most tokens that it may think.
    pub(crate) fn thinking_budget(&self) -> usize {
        match self.thinks() {
            Some(false) => 0,
            _ => self.max_thinking_tokens.unwrap_or(usize::MAX),
        }
    }

    /// Checks every value, the length of each list, and values that depend on each other.
    ///
    /// # Errors
    ///
    /// If one is out of its range; the error names it.
    pub fn check(&self) -> Result<(), Error> {
        self.check_lists()?;
        self.check_values()?;
        let named = self.chat_template_kwargs.iter().flat_map(TemplateVariables::keys);
        if let Some(name) = named.into_iter().find(|name| OWN_VARIABLES.contains(&name.as_str())) {
            return Err(Error::BadOption {
                option: "chat_template_kwargs",
                found: format!("`{name}`"),
                expected: "variables that the engine does not set itself".into(),
            });
        }
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

//! Text to tokens and back.
//!
//! - [`Tokenizer`] turns text into token ids and ids into text; [`HfTokenizer`] reads a
//!   `tokenizer.json`.
//! - [`ChatTemplate`] writes a conversation as the prompt its model was trained on.
//! - [`MarkedMessages`] keep the special tokens that a message spells from being read as such.
//! - [`PromptTemplate`] is a prompt with variables.
//! - [`TokenTable`] is what grammars need of a tokenizer, as bytes for another module.
//! - [`StreamDecoder`] gives the text of a generation piece by piece, never half a character.
//! - [`StopStrings`] ends a generation at a string without showing any part of it.
//! - [`PatternFilter`] replaces words and regular expressions in a text, or ends it before them;
//!   [`ContentFilter`] is the trait of whatever else looks at a text before it is shown.
//! - [`Sampler`] picks the next token; it keeps no state, so a draw can be repeated anywhere. It
//!   can say which logits it needs, and chooses the same of these as of all.
//! - [`LogitsProcessor`] is a custom sampling step, and [`Strategy`] the trait
//!   of whatever chooses a token instead.
//! - [`Logprobs`] is what the model itself thought of tokens.
//! - [`Tool`] is a function that a model may call, [`ToolFormat`] how a family writes calls, and
//!   [`ToolCallReader`] takes them out of its text.
//!
//! This crate sees a model only as `&[f32]` logits, or pairs of tokens and logits. It does no IO, reads no clock, starts no
//! thread and keeps no global state, and it gives the same bits natively and in WebAssembly:
//! one regular expression engine, and exponentials from `libm` alone.

mod chat_template;
mod civil_time;
mod content_filter;
mod draw;
mod error;
mod json_lines;
mod logits_state;
mod logprob;
mod marked_text;
mod message;
mod message_fault;
mod option;
mod pattern_filter;
mod processor;
mod ranked_candidates;
mod reasoning;
mod sampler;
mod sampler_options;
mod sampling_step;
mod sampling_strategy;
mod spellings;
mod stop_strings;
mod strategy;
mod stream_decoder;
mod token_bytes;
mod token_mask;
mod token_table;
mod tokenizer;
mod tool;
mod tool_calls;
mod tool_messages;

pub use chat_template::{
    ChatTemplate, ChatTemplateFiles, Interrupt, PromptTemplate, RenderOptions, TemplateVariables,
};
pub use civil_time::CivilTime;
pub use content_filter::{ContentFilter, FilterState, FilterStep, FilteredText, SharedFilter};
pub use draw::Draw;
pub use error::TextError;
pub use json_lines::{JsonLines, escape_line_breaks};
pub use logprob::{Logprobs, logprob};
pub use marked_text::MarkedMessages;
pub use message::Message;
pub use message_fault::MessageFault;
pub use option::{
    AnyField, FieldValue, IntegerRange, MIN_TEMPERATURE, NumberRange, OptionError, OptionField,
    OptionGroup, OptionKind, OptionSpec, OptionValue, check_options, fill_default, get_option,
    set_option,
};
pub use pattern_filter::{FilterAction, FilterPattern, FilterRule, PatternFilter};
pub use processor::{Candidates, LogitsProcessor, MaybeShared, SharedProcessor};
pub use reasoning::{ReasoningReader, ReasoningStep};
pub use sampler::{Choice, Greedy, Needs, Sampler};
pub use sampler_options::SamplerOptions;
pub use sampling_step::SamplingStep;
pub use sampling_strategy::SamplingStrategy;
pub use stop_strings::{StopStep, StopStrings};
pub use strategy::{SamplerState, Step, Strategy};
pub use stream_decoder::StreamDecoder;
pub use token_mask::TokenMask;
pub use token_table::{TokenTable, TokenWord};
pub use tokenizer::{HfTokenizer, Tokenizer};
pub use tool::{Tool, ToolChoice};
pub use tool_calls::{
    ArgumentForm, PARAMETER, Parameter, ToolCall, ToolCallDelta, ToolCallReader, ToolFormat,
    ToolStep, Types,
};
pub use tool_messages::PreparedTools;

/// A text without the byte order mark that some editors write before it.
#[must_use]
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

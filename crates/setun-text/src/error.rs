//! Errors of tokenizers, templates and samplers.

use crate::{MessageFault, OptionError};

/// Why text could not be tokenized, rendered or sampled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The bytes are no `tokenizer.json` that we can read.
    #[error("tokenizer.json cannot be read: {reason}")]
    TokenizerFile {
        /// What the parser found, with its place in the file.
        reason: String,
    },

    /// A field of a `tokenizer.json` has a value that cannot be used.
    #[error("`{field}` of tokenizer.json is {found}, expected {expected}")]
    TokenizerField {
        /// The field, by the names that lead to it.
        field: String,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },

    /// The tokenizer refused a text.
    #[error("{bytes} bytes of text cannot be tokenized: {reason}")]
    Encode {
        /// Length of the text in bytes.
        bytes: usize,
        /// What the tokenizer said.
        reason: String,
    },

    /// The tokenizer refused a run of ids.
    #[error("{count} token ids cannot be decoded: {reason}")]
    Decode {
        /// How many ids there were.
        count: usize,
        /// What the tokenizer said.
        reason: String,
    },

    /// A message of a conversation cannot be taken.
    #[error("message {index}: {fault}")]
    Message {
        /// Its place in the conversation, from 0.
        index: usize,
        /// What is wrong with it.
        fault: MessageFault,
    },

    /// A tool cannot be offered to a model.
    #[error("{}", tool_words(*index, field, expected, found))]
    Tool {
        /// Its place in the list, from 0.
        index: usize,
        /// The field at fault.
        field: &'static str,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },

    /// A tool has to be called that the request does not have.
    #[error("{}", choice_words(found))]
    ToolChoice {
        /// The choice.
        found: String,
    },

    /// Messages that spell a special token leave no character to mark it with.
    #[error("the messages have every noncharacter from U+FDD0 to U+FDEF, expected text")]
    NoFreeMark,

    /// A file beside the tokenizer is not what it should be.
    #[error("{file} cannot be read: expected {expected}, found {found}")]
    ConfigFile {
        /// Name of the file.
        file: &'static str,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },

    /// A chat template is not valid Jinja.
    #[error("chat template `{name}` is not valid at line {line}: {reason}")]
    TemplateSyntax {
        /// Name of the template among those of the model.
        name: String,
        /// Line in the template, from 1.
        line: usize,
        /// What the parser found.
        reason: String,
    },

    /// A chat template called `raise_exception`: it does not accept this conversation.
    #[error("the chat template refuses this conversation: {message}")]
    TemplateRefused {
        /// The template's own words.
        message: String,
    },

    /// A chat template failed while it ran.
    #[error("chat template `{name}` failed at line {line}: {reason}")]
    TemplateFailed {
        /// Name of the template among those of the model.
        name: String,
        /// Line in the template, from 1.
        line: usize,
        /// What went wrong.
        reason: String,
    },

    /// A template requested more than one rendering may take, and was stopped before it got it.
    #[error(
        "template `{name}` is stopped at line {line}: {found} {what}, at most {limit} are allowed"
    )]
    TemplateLimit {
        /// Name of the template.
        name: String,
        /// Line in the template, from 1.
        line: usize,
        /// What the limit is for, such as bytes or steps.
        what: &'static str,
        /// How much is allowed.
        limit: u64,
        /// How much was requested, with what was taken before.
        found: u64,
    },

    /// A template still ran when its caller wanted no more of it, such as at a deadline.
    #[error("template `{name}` is stopped at line {line}: its time is over")]
    TemplateInterrupted {
        /// Name of the template.
        name: String,
        /// Line in the template, from 1.
        line: usize,
    },

    /// The model has several chat templates and none of them is for this conversation.
    #[error("the model has no chat template `{wanted}`, only {found:?}")]
    TemplateMissing {
        /// The name that was looked for.
        wanted: &'static str,
        /// The names there are.
        found: Vec<String>,
    },

    /// A prompt template is not valid, or failed while it ran.
    #[error("template `{name}` at line {line}: {reason}")]
    PromptTemplate {
        /// Name of the template.
        name: String,
        /// Line in the template, from 1.
        line: usize,
        /// What went wrong.
        reason: String,
    },

    /// A prompt template needs a variable that it was not given.
    #[error("template `{name}` needs the variable `{variable}` at line {line}")]
    MissingVariable {
        /// Name of the template.
        name: String,
        /// Line in the template where the variable stands first, from 1.
        line: usize,
        /// Name of the variable.
        variable: String,
    },

    /// A stop string without any character would end every generation at once.
    #[error("stop string {index} is empty, expected at least one character")]
    EmptyStopString {
        /// Its place in the list, from 0.
        index: usize,
    },

    /// Stop strings cannot be looked for.
    #[error("the stop strings cannot be looked for: {reason}")]
    StopStrings {
        /// What the automaton's builder said.
        reason: String,
    },

    /// A pattern of a filter cannot be looked for.
    #[error("pattern {index} of the filter, `{pattern}`, cannot be looked for: {reason}")]
    FilterPattern {
        /// Its place in the list, from 0.
        index: usize,
        /// The pattern.
        pattern: String,
        /// What is wrong, and where.
        reason: String,
    },

    /// A content filter of the caller's own failed.
    #[error("a content filter failed: {reason}")]
    Filter {
        /// What it said.
        reason: String,
    },

    /// An option is unknown, or out of its range.
    #[error(transparent)]
    Option(#[from] OptionError),

    /// A list of a sampling option has nothing in it.
    #[error("{option} is empty, expected {expected}")]
    EmptyOption {
        /// Name of the option.
        option: &'static str,
        /// What should be there.
        expected: &'static str,
    },

    /// A sampling option names a token that the model does not have.
    #[error("{option} names token {token}, expected an id below {vocabulary}")]
    OptionToken {
        /// Name of the option.
        option: &'static str,
        /// The id at fault.
        token: u32,
        /// How many tokens there are.
        vocabulary: usize,
    },

    /// There is no such step of sampling.
    #[error("there is no step `{found}` of sampling, expected one of {}", known.join(", "))]
    UnknownStep {
        /// What was requested.
        found: String,
        /// The names there are.
        known: Vec<&'static str>,
    },

    /// An order of sampling has a step twice.
    #[error("the order of sampling names `{step}` twice, expected each step at most once")]
    RepeatedStep {
        /// Its name.
        step: &'static str,
    },

    /// Masks, bans and processors left no token.
    #[error("no token may come next: all are banned, or not allowed")]
    NoTokenLeft,

    /// A choice depends on those before it, and its caller keeps no state.
    #[error("`{option}` needs a state for each sequence, expected a `SamplingStrategy`")]
    NeedsState {
        /// Name of the option.
        option: &'static str,
    },

    /// A processor of the caller's own failed.
    #[error("a logits processor failed: {reason}")]
    Processor {
        /// What it said.
        reason: String,
    },

    /// There is nothing to choose from.
    #[error("there are no logits, expected one for each token of the vocabulary")]
    NoLogits,

    /// A logit is infinite or not a number.
    #[error("the logit of token {token} is {found}, expected a finite number")]
    LogitNotFinite {
        /// Id of the token.
        token: u32,
        /// Its logit, after what was done to it.
        found: f32,
    },

    /// The history holds a token that has no logit.
    #[error("token {token} of the history has no logit, expected an id below {vocabulary}")]
    TokenRange {
        /// The id at fault.
        token: u32,
        /// How many logits there are.
        vocabulary: usize,
    },
}

impl TextError {
    /// The words of an error of tools or of a choice among them; none of another. They take less code than
    /// `Display`, which has the words of all errors: browsers' module of grammars has its bytes counted.
    #[must_use]
    pub fn words_of_tools(&self) -> String {
        match self {
            Self::Tool { index, field, expected, found } => {
                tool_words(*index, field, expected, found)
            }
            Self::ToolChoice { found } => choice_words(found),
            _ => String::new(),
        }
    }
}

fn tool_words(index: usize, field: &str, expected: &str, found: &str) -> String {
    format!("tools[{index}].{field}: expected {expected}, found {found}")
}

fn choice_words(found: &str) -> String {
    format!("the tool choice `{found}` is no tool of the request")
}

//! Errors of tokenizers, templates and samplers.

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

    /// The model has several chat templates and none of them is for this conversation.
    #[error("the model has no chat template `{wanted}`, only {found:?}")]
    TemplateMissing {
        /// The name that was looked for.
        wanted: &'static str,
        /// The names there are.
        found: Vec<String>,
    },

    /// A stop string without any character would end every generation at once.
    #[error("stop string {index} is empty, expected at least one character")]
    EmptyStopString {
        /// Its place in the list, from 0.
        index: usize,
    },

    /// A sampling option is out of its range.
    #[error("{option} is {found}, expected {range}")]
    OptionRange {
        /// Name of the option.
        option: &'static str,
        /// The values it may have.
        range: &'static str,
        /// The value it has.
        found: f32,
    },

    /// There is nothing to choose from.
    #[error("there are no logits, expected one for each token of the vocabulary")]
    NoLogits,

    /// A logit is infinite or not a number.
    #[error("the logit of token {token} is {found}, expected a finite number")]
    LogitNotFinite {
        /// Id of the token.
        token: u32,
        /// Its logit, after repetition penalty and temperature.
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

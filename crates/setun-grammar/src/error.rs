//! Errors of vocabularies, grammars and constraints.

use std::time::Duration;

/// Why a grammar cannot be used, or a token not be taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// The tokenizer does not say what its tokens are in bytes.
    #[error("the tokenizer gives the bytes of none of its {tokens} tokens, as grammars need them")]
    NoTokenBytes {
        /// Size of the vocabulary.
        tokens: usize,
    },

    /// Without a token that ends a text no text with a form could end.
    #[error("there is no end token, expected at least one")]
    NoEndToken,

    /// A token is not in the vocabulary.
    #[error("token {token} is not in the vocabulary, expected an id below {vocabulary}")]
    TokenRange {
        /// The id at fault.
        token: u32,
        /// Size of the vocabulary.
        vocabulary: usize,
    },

    /// A vocabulary is larger than grammars can have it.
    #[error("the vocabulary has {found} tokens, expected at most {limit}")]
    VocabularySize {
        /// The most tokens.
        limit: usize,
        /// Tokens of the vocabulary.
        found: usize,
    },

    /// A JSON schema has a keyword that decides which values are valid and is not supported.
    #[error("keyword `{keyword}` at {place} of the schema is not supported{hint}")]
    Keyword {
        /// The keyword, with its value where others would do.
        keyword: String,
        /// JSON pointer of the schema that has it, as a fragment.
        place: String,
        /// What would do, or why not; empty or beginning with a colon.
        hint: String,
    },

    /// A keyword of a JSON schema has a value that it cannot have.
    #[error("keyword `{keyword}` at {place} of the schema: expected {expected}, found {found}")]
    KeywordValue {
        /// The keyword.
        keyword: String,
        /// JSON pointer of the schema that has it, as a fragment.
        place: String,
        /// What may be there.
        expected: &'static str,
        /// What is there, shortened.
        found: String,
    },

    /// A JSON schema is understood but cannot be made a grammar, or no value is valid.
    #[error("the schema cannot be followed: {reason}")]
    Schema {
        /// What the compiler found.
        reason: String,
    },

    /// A regular expression is not valid or uses what automata cannot do.
    #[error("the regular expression cannot be followed: {reason}")]
    Regex {
        /// What the compiler found.
        reason: String,
    },

    /// A grammar in Lark's notation is not valid.
    #[error("the Lark grammar cannot be followed: {reason}")]
    Lark {
        /// What the compiler found, with its line.
        reason: String,
    },

    /// A grammar in GBNF is not valid, or has something that is not supported.
    #[error("line {line} of the GBNF grammar: expected {expected}, found {found}")]
    Gbnf {
        /// Line of the grammar, from 1.
        line: usize,
        /// What may be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },

    /// A grammar in GBNF is read and cannot be compiled.
    #[error("the GBNF grammar cannot be followed: {reason}")]
    GbnfCompiler {
        /// What the compiler found.
        reason: String,
    },

    /// The parameters of a tool cannot be followed.
    #[error("parameters of the tool `{name}`: {error}")]
    Tool {
        /// Place of the tool, from 0.
        tool: usize,
        /// Its name.
        name: String,
        /// Why.
        error: Box<GrammarError>,
    },

    /// A list of tools is not as it should be.
    #[error("{reason}")]
    Tools {
        /// Which tool, and why.
        reason: String,
    },

    /// There is no tool to call.
    #[error("there is no tool to call, expected at least one, and the one that is chosen")]
    NoTool,

    /// A list of choices is empty.
    #[error("the list of choices is empty, expected at least one")]
    NoChoice,

    /// A grammar has no text that ends.
    #[error("no text of the grammar ever ends: {rule} goes on forever")]
    NeverEnds {
        /// Name of a rule without end, as the compiler calls it.
        rule: String,
    },

    /// A grammar needs more than its limits allow.
    #[error("the grammar is too complex: {reason}")]
    TooComplex {
        /// Which limit, in the compiler's words.
        reason: String,
    },

    /// A grammar was not compiled in the time that it was given.
    #[error("the grammar is not compiled after {time:?}, the time given: expected a simpler one")]
    Deadline {
        /// The time.
        time: Duration,
    },

    /// The caller cancelled the compilation.
    #[error("the compilation of the grammar was cancelled")]
    Cancelled,

    /// The system gives no thread for a compilation.
    #[error("no thread can be started to compile the grammar: {reason}")]
    Thread {
        /// What the system says.
        reason: String,
    },

    /// A token may not come here.
    #[error("token {token} may not follow the first {taken} tokens")]
    TokenRefused {
        /// The token.
        token: u32,
        /// Tokens that were taken before it.
        taken: usize,
    },

    /// The text is not complete and no token of the vocabulary continues it.
    #[error("after {taken} tokens no token of the vocabulary can continue the text")]
    NoTokenFits {
        /// Tokens that were taken before.
        taken: usize,
    },

    /// More tokens are to be taken back than were taken.
    #[error("{asked} tokens cannot be rolled back, expected at most {taken}")]
    Rollback {
        /// Tokens to take back.
        asked: usize,
        /// Tokens that were taken.
        taken: usize,
    },

    /// The parser failed in a way that should not happen.
    #[error("the grammar's parser failed after {taken} tokens: {reason}")]
    Parser {
        /// Tokens that were taken before.
        taken: usize,
        /// What it said.
        reason: String,
    },
}

//! Last-token and mean pooling for embeddings.

/// How the hidden states of a text's tokens, each after the last norm, become one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// That of the last token, which alone has seen the whole text.
    #[default]
    Last,
    /// The mean of all, summed in the order of the tokens.
    Mean,
}

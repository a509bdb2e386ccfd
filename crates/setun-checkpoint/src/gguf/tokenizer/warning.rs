//! Warnings of a tokenizer conversion that succeeded.

/// What a user should know of a conversion that went well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Warning {
    /// The file does not say how text is split.
    #[error(
        "the file has no tokenizer.ggml.pre; text is split as `{assumed}` does, unless the option \
         pretokenizer (--pre) names another way"
    )]
    PreTokenizerAbsent {
        /// The name that is taken instead.
        assumed: &'static str,
    },

    /// A token ends texts by its name, though the metadata does not say so.
    #[error("token {id}, `{token}`, ends a text as well, though the metadata does not say so")]
    EndToken {
        /// Its spelling.
        token: String,
        /// Its id.
        id: u32,
    },

    /// The id of the padding token is none of the vocabulary's.
    #[error("the padding token {found} is left out: there are {tokens} tokens")]
    PaddingToken {
        /// The id.
        found: u32,
        /// Number of tokens.
        tokens: usize,
    },

    /// Scores decide which pieces are joined, but no two differ.
    #[error("the scores of all tokens are equal; lower ids are joined first")]
    EqualScores,

    /// Merges that are there twice count where they stand first.
    #[error("{count} merges are there twice")]
    RepeatedMerges {
        /// How many.
        count: usize,
    },

    /// The merges of a tokenizer are not what scores can say.
    #[error(
        "scores cannot say in which order this tokenizer joins pieces; programs that read no \
         merges beside scores will give other tokens"
    )]
    MergesBesideScores,

    /// A tokenizer puts a space before the beginning of a text only.
    #[error("GGUF has a space after every special token, where this tokenizer has none")]
    SpacePrefix,

    /// A tokenizer normalises text in a way that the name of its pre-tokenizer does not imply.
    #[error("GGUF cannot say that text is normalised by {normalizer}")]
    Normalizer {
        /// The normalizer.
        normalizer: String,
    },

    /// Tokens that take the spaces around them, or are found as whole words only.
    #[error("GGUF cannot say that `{token}` takes spaces around it or must be a whole word")]
    AddedToken {
        /// The first of them.
        token: String,
    },
}

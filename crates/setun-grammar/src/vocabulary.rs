//! A tokenizer's vocabulary as grammars need it.

use std::fmt;
use std::sync::Arc;

use llguidance::ParserFactory;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use setun_text::{TokenMask, TokenTable, TokenWord, Tokenizer};

use crate::GrammarError;
use crate::number_size::NumberTokens;

/// The most tokens, which bounds the ids that the tree of all tokens has room for.
const MAX_TOKENS: usize = 1 << 20;

/// The longest token in bytes that the tree of all tokens has room for; longer ones never fit.
const LONGEST_TOKEN: usize = 1000;

/// The tokens of a tokenizer as bytes, in a tree, and those that end a text.
///
/// It is made once for a tokenizer, which takes some 100 ms for 128,000 tokens, and shared by
/// all grammars.
pub struct Vocabulary {
    factory: ParserFactory,
    tokens: usize,
    end: TokenMask,
    number_tokens: NumberTokens,
    /// Tokens in the order of their bytes.
    sorted: Vec<u32>,
    kinds: Vec<TokenKind>,
}

/// Effect of a token within a string.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokenKind {
    /// It has a quotation mark or a backslash.
    pub(crate) is_structural: bool,
    /// It has a part of a character alone.
    pub(crate) is_partial: bool,
}

impl Vocabulary {
    /// Asks the tokenizer for the bytes of each token.
    ///
    /// `end_tokens` are the ids that end a generation; they need not be special tokens, but end
    /// a text wherever they are chosen. Other special tokens are only allowed where a Lark
    /// grammar names them.
    pub fn new(tokenizer: &dyn Tokenizer, end_tokens: &[u32]) -> Result<Self, GrammarError> {
        Self::from_table(&TokenTable::new(tokenizer, end_tokens))
    }

    /// The same of a tokenizer's [`TokenTable`].
    pub fn from_table(table: &TokenTable) -> Result<Self, GrammarError> {
        let (tokens, end_tokens) = (table.tokens(), table.end_tokens());
        if tokens > MAX_TOKENS {
            return Err(GrammarError::VocabularySize { limit: MAX_TOKENS, found: tokens });
        }
        let end = end_mask(end_tokens, tokens)?;
        let words = words(table)?;
        let number_tokens = NumberTokens::new(&words);
        let kinds = words.iter().map(|word| kind(word)).collect();
        let mut sorted: Vec<u32> = (0..).take(words.len()).collect();
        sorted.sort_unstable_by_key(|&token| words.get(token as usize));
        let size = u32::try_from(tokens).unwrap_or(u32::MAX);
        let first = end_tokens.first().copied().ok_or(GrammarError::NoEndToken)?;
        let tree = TokTrie::from(&TokRxInfo::new(size, first), &words);
        let tree = tree.with_eos_tokens(end_tokens);
        let environment: TokEnv = Arc::new(Environment(tree));
        let slices = SlicedBiasComputer::general_slices();
        let mut factory =
            ParserFactory::new(&environment, InferenceCapabilities::default(), &slices)
                .map_err(|error| GrammarError::Parser { taken: 0, reason: error.to_string() })?;
        factory.quiet();
        Ok(Self { factory, tokens, end, number_tokens, sorted, kinds })
    }

    /// Size of the vocabulary: one more than the highest id.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The tokens that end a text.
    #[must_use]
    pub fn end_tokens(&self) -> &TokenMask {
        &self.end
    }

    pub(crate) fn factory(&self) -> &ParserFactory {
        &self.factory
    }

    pub(crate) fn number_tokens(&self) -> &NumberTokens {
        &self.number_tokens
    }

    /// All tokens in the order of their bytes.
    pub(crate) fn sorted(&self) -> &[u32] {
        &self.sorted
    }

    pub(crate) fn token_kind(&self, token: u32) -> TokenKind {
        self.kinds.get(token as usize).copied().unwrap_or_default()
    }

    /// Into how many tokens a text can be cut from each of its bytes on; the most that there are
    /// where it cannot be.
    pub(crate) fn fewest_tokens(&self, bytes: &[u8]) -> Vec<u32> {
        let tree = self.factory.tok_env().tok_trie();
        let mut counts = vec![u32::MAX; bytes.len() + 1];
        counts[bytes.len()] = 0;
        for start in (0..bytes.len()).rev() {
            let (mut node, mut least) = (tree.root(), u32::MAX);
            for (end, &byte) in (start + 1..).zip(&bytes[start..]) {
                let Some(next) = tree.child_at_byte(node, byte) else { break };
                node = next;
                if node.token_id().is_some() {
                    least = least.min(counts[end].saturating_add(1));
                }
            }
            counts[start] = least;
        }
        counts
    }

    /// The bytes that a token adds to a text; of a special one those of its name.
    pub(crate) fn token_bytes(&self, token: u32) -> &[u8] {
        let bytes = self.factory.tok_env().tok_trie().token(token);
        bytes.strip_prefix(&[TokTrie::SPECIAL_TOKEN_MARKER]).unwrap_or(bytes)
    }

    /// The special token of a name.
    pub(crate) fn special_token(&self, name: &str) -> Option<u32> {
        self.factory.tok_env().tok_trie().get_special_token(name)
    }
}

fn kind(word: &[u8]) -> TokenKind {
    TokenKind {
        is_structural: word.iter().any(|byte| b"\"\\".contains(byte)),
        is_partial: std::str::from_utf8(word).is_err(),
    }
}

fn end_mask(end_tokens: &[u32], tokens: usize) -> Result<TokenMask, GrammarError> {
    let mut end = TokenMask::none(tokens);
    for &token in end_tokens {
        if token as usize >= tokens {
            return Err(GrammarError::TokenRange { token, vocabulary: tokens });
        }
        end.insert(token);
    }
    if end.is_empty() { Err(GrammarError::NoEndToken) } else { Ok(end) }
}

/// The bytes of each token, in `llguidance`'s way: nothing for a token that never fits, and a
/// byte that no text has before the name of a special one.
fn words(table: &TokenTable) -> Result<Vec<Vec<u8>>, GrammarError> {
    if !table.words().any(|word| matches!(word, TokenWord::Bytes(_))) {
        return Err(GrammarError::NoTokenBytes { tokens: table.tokens() });
    }
    let words = table.words().map(|word| match word {
        TokenWord::Bytes([TokTrie::SPECIAL_TOKEN_MARKER, ..]) | TokenWord::Name([]) => Vec::new(),
        TokenWord::Bytes(bytes) => bytes.to_vec(),
        TokenWord::Name(name) => [&[TokTrie::SPECIAL_TOKEN_MARKER], name].concat(),
    });
    let fits = |word: Vec<u8>| if word.len() > LONGEST_TOKEN { Vec::new() } else { word };
    Ok(words.map(fits).collect())
}

/// Tokens for the parser. It never makes tokens of bytes by itself: how a text is cut into
/// tokens stays the model's choice, so that a grammar only takes choices away.
struct Environment(TokTrie);

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.0
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.0.greedy_tokenize(bytes)
    }

    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Vocabulary")
            .field("tokens", &self.tokens)
            .field("end", &self.end.iter().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

//! Shared helpers: vocabularies, and sampling without a model.

use std::path::PathBuf;
use std::sync::Arc;

use setun_grammar::{Constraint, Grammar, GrammarError, GrammarLimits, GrammarSpec, Vocabulary};
use setun_text::{Draw, HfTokenizer, TextError, TokenMask, Tokenizer};

/// A file of the workspace's test data.
pub(crate) fn fixture(path: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A small byte-level tokenizer and the tokens that end a text.
pub(crate) fn byte_level() -> (HfTokenizer, Vec<u32>) {
    let file = fixture("golden/tokenizer-llama3/tokenizer.json");
    (HfTokenizer::from_bytes(&file).expect("it is valid"), vec![4087, 4095])
}

/// A small tokenizer in the way of `SentencePiece`, with byte tokens.
pub(crate) fn sentence_piece() -> (HfTokenizer, Vec<u32>) {
    let file = fixture("golden/tokenizer-llama2/tokenizer.json");
    (HfTokenizer::from_bytes(&file).expect("it is valid"), vec![2])
}

/// Bytes as tokens, and 256 as the end.
pub(crate) struct Bytes;

impl Tokenizer for Bytes {
    fn encode(&self, text: &str, _: bool) -> Result<Vec<u32>, TextError> {
        Ok(text.bytes().map(u32::from).collect())
    }
    fn decode(&self, ids: &[u32], _: bool) -> Result<String, TextError> {
        let bytes: Vec<u8> = ids.iter().filter_map(|&id| u8::try_from(id).ok()).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
    fn vocab_size(&self) -> usize {
        257
    }
    fn token_to_id(&self, token: &str) -> Option<u32> {
        (token == "<end>").then_some(256)
    }
    fn id_to_token(&self, id: u32) -> Option<String> {
        (id == 256).then(|| "<end>".to_owned())
    }
    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        u8::try_from(id).ok().map(|byte| vec![byte])
    }
}

pub(crate) fn bytes() -> Arc<Vocabulary> {
    Arc::new(Vocabulary::new(&Bytes, &[256]).expect("bytes"))
}

/// A tokenizer with what grammars need of it.
pub(crate) struct Tokens {
    pub(crate) tokenizer: Box<dyn Tokenizer>,
    pub(crate) vocabulary: Arc<Vocabulary>,
}

impl Tokens {
    pub(crate) fn new((tokenizer, end): (impl Tokenizer + 'static, Vec<u32>)) -> Self {
        let vocabulary = Arc::new(Vocabulary::new(&tokenizer, &end).expect("it has bytes"));
        Self { tokenizer: Box::new(tokenizer), vocabulary }
    }

    pub(crate) fn grammar(&self, spec: &GrammarSpec) -> Result<Grammar, GrammarError> {
        Grammar::new(spec, &self.vocabulary, &GrammarLimits::default())
    }

    pub(crate) fn bytes(&self, tokens: &[u32]) -> Vec<u8> {
        tokens.iter().filter_map(|&id| self.tokenizer.token_bytes(id)).flatten().collect()
    }

    pub(crate) fn text(&self, tokens: &[u32]) -> String {
        String::from_utf8_lossy(&self.bytes(tokens)).into_owned()
    }

    /// A text of at most this many tokens, that which ends it included, and whether it is whole. A
    /// model of no knowledge chooses; where it is led, it knows its limit.
    pub(crate) fn write(
        &self,
        grammar: &Grammar,
        seed: u64,
        most: usize,
        is_led: bool,
    ) -> (Vec<u32>, bool) {
        let mut constraint = Constraint::new(grammar);
        if is_led {
            constraint.set_tokens_left(most);
        }
        let mut text = Vec::new();
        for index in 0..most as u64 {
            let mask = constraint.mask().expect("the text can go on").clone();
            let token = any(&mask, seed, index);
            constraint.accept(token).expect("the mask has it");
            if self.vocabulary.end_tokens().contains(token) {
                break;
            }
            text.push(token);
        }
        (text, constraint.is_accepting().expect("it did not fail"))
    }
}

/// A grammar over bytes.
pub(crate) fn over_bytes(spec: &GrammarSpec) -> Result<Grammar, GrammarError> {
    Grammar::new(spec, &bytes(), &GrammarLimits::default())
}

/// Whether a text is one of the grammar's, byte by byte.
pub(crate) fn accepts(grammar: &Grammar, text: &str) -> bool {
    let mut constraint = Constraint::new(grammar);
    let taken = text.bytes().all(|byte| match constraint.accept(u32::from(byte)) {
        Ok(()) => true,
        Err(GrammarError::TokenRefused { .. }) => false,
        Err(error) => panic!("{text}: {error}"),
    });
    taken && constraint.is_accepting().expect("it did not fail")
}

/// What ends a JSON text soon, in the order in which it is tried.
const CLOSING: [&str; 8] = ["\"", "}", "]", "0", ":", ",", "t", "n"];

/// A text as a model of no knowledge writes it: any allowed token is as likely as any other.
/// After `most` tokens it is brought to an end, with what closes first.
pub(crate) fn sample(
    tokens: &Tokens,
    grammar: &Grammar,
    seed: u64,
    most: usize,
) -> Result<Vec<u32>, String> {
    let mut constraint = Constraint::new(grammar);
    let closing: Vec<u32> =
        CLOSING.iter().filter_map(|text| tokens.tokenizer.token_to_id(text)).collect();
    let mut text = Vec::new();
    for index in 0..4 * most as u64 {
        let mask = constraint.mask().map_err(|error| error.to_string())?.clone();
        let end = tokens.vocabulary.end_tokens().iter().find(|&end| mask.contains(end));
        let close = || closing.iter().copied().find(|&token| mask.contains(token));
        let token = match end {
            Some(end) if text.len() >= most || mask.count() < 3 => end,
            // Not always: what closes most things is a part of others.
            _ if text.len() >= most && !index.is_multiple_of(4) => {
                close().unwrap_or_else(|| any(&mask, seed, index))
            }
            _ => any(&mask, seed, index),
        };
        constraint.accept(token).map_err(|error| error.to_string())?;
        if tokens.vocabulary.end_tokens().contains(token) {
            return Ok(text);
        }
        text.push(token);
    }
    Err(format!("no end: {}", String::from_utf8_lossy(&tokens.bytes(&text))))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a small number"
)]
pub(crate) fn any(mask: &TokenMask, seed: u64, index: u64) -> u32 {
    let place = Draw { seed, sequence: 0, index }.uniform(0) * mask.count() as f64;
    mask.iter().nth(place as usize).expect("a mask is never empty")
}

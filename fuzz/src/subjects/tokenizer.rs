//! A `tokenizer.json` up to the first byte of zero, and a text behind it.

use setun_text::{HfTokenizer, TokenTable, Tokenizer};

use crate::{MemoryBound, run_bounded};

/// A tokenizer takes up to a kilobyte for each byte of an added token, and a stage up to 256 bytes
/// for each byte of a text, of which there are a few copies.
const MEMORY: MemoryBound = MemoryBound { fixed: 32 << 20, each: 4 << 10 };

/// Spaces, words, digits, marks, a line, letters of two to four bytes, and some that combine.
const TEXT: &str = "Hello  a ab Ab 1234 <s>.\n\u{e9}e\u{301} \u{4e16}\u{754c} \u{1f600}|</s>[SEP]";

/// Reads the tokenizer, and takes texts there and back.
///
/// # Panics
///
/// If that exceeds its bounds, or an id lies outside the vocabulary, or a text has fewer tokens than
/// it is said to have at least.
pub fn run(bytes: &[u8]) {
    run_bounded(bytes.len(), MEMORY, || {
        let mut parts = bytes.splitn(2, |byte| *byte == 0);
        let Some(Ok(tokenizer)) = parts.next().map(HfTokenizer::from_bytes) else { return };
        let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
        there_and_back(&tokenizer, TEXT);
        there_and_back(&tokenizer, &text);
        let _ = TokenTable::new(&tokenizer, &[0]).to_bytes();
        there_and_back(&tokenizer.with_specials_as_text(), TEXT);
    });
}

fn there_and_back(tokenizer: &HfTokenizer, text: &str) {
    let least = tokenizer.min_tokens(text);
    for add_special in [false, true] {
        // A text that cannot be encoded is an error.
        let Ok(ids) = tokenizer.encode(text, add_special) else { continue };
        let in_vocabulary = |id: &u32| (*id as usize) < tokenizer.vocab_size();
        assert!(ids.iter().all(in_vocabulary), "{ids:?}, {} tokens", tokenizer.vocab_size());
        assert!(ids.len() >= least, "{} tokens, at least {least} were expected", ids.len());
        for skip_special in [false, true] {
            let _ = tokenizer.decode(&ids, skip_special);
        }
    }
}

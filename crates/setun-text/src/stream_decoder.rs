//! The text of a generation, piece by piece.

use std::sync::Arc;

use crate::{TextError, Tokenizer, token_bytes::spelt_byte};

/// What stands for bytes that form no character, or none yet.
const REPLACEMENT: char = '\u{fffd}';

/// Most bytes of a character that is not complete, each of which may show as one U+FFFD.
const LONGEST_INCOMPLETE: usize = 3;

/// How many tokens [`StreamDecoder::shorten`] tries as the new beginning of its window.
/// Eight tokens of one byte each hold a whole character wherever they begin.
const BEGINNINGS_TRIED: usize = 8;

/// Gives the text of generated tokens in complete characters.
///
/// All pieces joined are `decode(prompt + generated)` without `decode(prompt)`: without the
/// longest beginning that the two have in common, which is all of the latter unless the
/// prompt ends inside a character. Special tokens have no text.
///
/// # How
///
/// Tokens cannot be decoded one by one: a character may be spread over several, and many
/// decoders strip a space from the first. So a window of the latest tokens is decoded each
/// time, and what is new in its text goes out. Two kinds of text wait, because a later token
/// can still change them:
///
/// - up to three U+FFFD at the very end, perhaps the beginning of a character;
/// - a run of byte tokens (`<0x0A>`), which such decoders read as one piece: all of it becomes
///   U+FFFD if its end is not UTF-8. It goes out with the token that follows it.
///
/// The window then shrinks to the fewest tokens whose text ends as the whole text does, mostly
/// to one, so the work for a token does not grow with the text.
#[derive(Clone)]
pub struct StreamDecoder {
    tokenizer: Arc<dyn Tokenizer>,
    /// The latest tokens. Decoding them and what follows gives the end of the whole text.
    window: Vec<u32>,
    /// The beginning of the window's text that has gone out already, or is the prompt's.
    settled: String,
    /// Whether the window ends in a run of byte tokens.
    in_byte_run: bool,
}

impl StreamDecoder {
    /// Begins after a prompt, which may be empty. Decodes the prompt once.
    pub fn new(tokenizer: Arc<dyn Tokenizer>, prompt_ids: &[u32]) -> Result<Self, TextError> {
        let window = prompt_ids.to_vec();
        let settled = tokenizer.decode(&window, true)?;
        let text = settled.clone();
        let mut decoder = Self { tokenizer, window, settled, in_byte_run: false };
        decoder.in_byte_run = decoder.ends_in_byte_run()?;
        decoder.shorten(&text)?;
        Ok(decoder)
    }

    /// The text of a token by itself: its bytes, those that form no character as U+FFFD; of a
    /// special token its spelling.
    #[must_use]
    pub fn token_text(&self, id: u32) -> String {
        match self.tokenizer.token_bytes(id) {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => self.tokenizer.id_to_token(id).unwrap_or_default(),
        }
    }

    /// Takes one token; returns the characters that are certain now, often none.
    pub fn push(&mut self, id: u32) -> Result<String, TextError> {
        self.window.push(id);
        if self.is_byte(id) || (self.in_byte_run && self.is_blank(id)?) {
            self.in_byte_run = true;
            return Ok(String::new());
        }
        self.in_byte_run = false;
        let text = self.tokenizer.decode(&self.window, true)?;
        let delta = self.settle(&text, certain_length(&text));
        self.shorten(&text)?;
        Ok(delta)
    }

    /// The rest of the text, with U+FFFD for a character that never became complete.
    pub fn finish(&mut self) -> Result<String, TextError> {
        let text = self.tokenizer.decode(&self.window, true)?;
        Ok(self.settle(&text, text.len()))
    }

    /// What is new in the first `certain` bytes of the window's text.
    fn settle(&mut self, text: &str, certain: usize) -> String {
        let known = common_beginning(&self.settled, text);
        if certain <= known {
            return String::new();
        }
        text[..certain].clone_into(&mut self.settled);
        text[known..certain].to_owned()
    }

    /// Moves the window's beginning as far as the text that follows stays the same.
    ///
    /// `text` is the text of the window.
    fn shorten(&mut self, text: &str) -> Result<(), TextError> {
        if !text.starts_with(&self.settled) {
            return Ok(()); // The prompt ended inside a character that is not complete yet.
        }
        let mut tried = 0;
        for begin in (1..self.window.len()).rev() {
            let id = self.window[begin];
            if self.is_byte(id) || self.is_blank(id)? {
                continue; // A run of bytes is never cut, nor begins a window: it has no end yet.
            }
            if let Some(settled) = self.settled_from(begin, text)? {
                self.window.drain(..begin);
                self.settled = settled;
                return Ok(());
            }
            tried += 1;
            if tried == BEGINNINGS_TRIED {
                break;
            }
        }
        Ok(())
    }

    /// The settled text of a window that begins at `begin`, or `None` if it would read on
    /// differently from the window as it is, whose text is `text`.
    ///
    /// Both decode alike from here on if they agree from some real character to the end: no
    /// byte before it can belong to one after it. If the shorter window has only U+FFFD, they
    /// do if no character goes across its beginning, so that the two parts add up.
    fn settled_from(&self, begin: usize, text: &str) -> Result<Option<String>, TextError> {
        let shorter = self.tokenizer.decode(&self.window[begin..], true)?;
        let agreed = shorter.trim_start_matches(REPLACEMENT);
        let adds_up = if agreed.is_empty() {
            !shorter.is_empty()
                && self.tokenizer.decode(&self.window[..begin], true)? + &shorter == text
        } else {
            text.ends_with(agreed)
        };
        let agreed = if agreed.is_empty() { shorter.as_str() } else { agreed };
        let unsettled = text.len() - self.settled.len();
        Ok((adds_up && unsettled <= agreed.len())
            .then(|| shorter[..shorter.len() - unsettled].to_owned()))
    }

    fn ends_in_byte_run(&self) -> Result<bool, TextError> {
        for &id in self.window.iter().rev() {
            if self.is_byte(id) {
                return Ok(true);
            }
            if !self.is_blank(id)? {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Whether the token is spelt as one byte, `<0xNN>`.
    fn is_byte(&self, id: u32) -> bool {
        self.tokenizer.id_to_token(id).is_some_and(|token| spelt_byte(&token).is_some())
    }

    /// Whether the token alone has no text, as a special token, which ends no run of bytes.
    fn is_blank(&self, id: u32) -> Result<bool, TextError> {
        Ok(self.tokenizer.decode(&[id], true)?.is_empty())
    }
}

/// Length of `text` in bytes without the U+FFFD at its end that may yet become a character.
fn certain_length(text: &str) -> usize {
    let mut certain = text;
    for _ in 0..LONGEST_INCOMPLETE {
        certain = certain.strip_suffix(REPLACEMENT).unwrap_or(certain);
    }
    certain.len()
}

/// Length in bytes of the longest common beginning of two texts, in whole characters.
fn common_beginning(left: &str, right: &str) -> usize {
    let pairs = left.chars().zip(right.chars());
    pairs.take_while(|(left, right)| left == right).map(|(character, _)| character.len_utf8()).sum()
}

impl std::fmt::Debug for StreamDecoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("StreamDecoder")
            .field("window", &self.window)
            .field("settled", &self.settled)
            .field("in_byte_run", &self.in_byte_run)
            .finish_non_exhaustive()
    }
}

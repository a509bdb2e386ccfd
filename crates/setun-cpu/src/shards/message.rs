//! Messages between a leader and its workers: words in the host's byte order, then bytes.
//!
//! ```text
//! to a worker      kind | number of words | words | bytes
//! to the leader    serial | status | values, or a text
//! ```

use setun_ops::{OpsError, numeric::to_u32};

/// Kinds of messages to a worker.
pub(crate) const WEIGHT: u32 = 0;
pub(crate) const PREPARE: u32 = 1;
pub(crate) const RUN: u32 = 2;

/// Status of an answer.
pub(crate) const DONE: u32 = 0;
pub(crate) const FAILED: u32 = 1;

/// Words of an answer before its values.
pub(crate) const ANSWER_WORDS: usize = 2;

const WORD: usize = size_of::<u32>();

/// The words of a message under construction.
#[derive(Debug)]
pub(crate) struct Words(Vec<u32>);

impl Words {
    pub(crate) fn new(kind: u32) -> Self {
        Self(vec![kind, 0])
    }

    #[inline(never)] // a module would have its code forty times
    pub(crate) fn push(&mut self, word: u32) {
        self.0.push(word);
    }

    /// Pushes a size; those of plans and weights fit a word.
    pub(crate) fn push_size(&mut self, size: usize) {
        self.push(to_u32(size));
    }

    /// The whole head of the message.
    pub(crate) fn finish(&mut self) -> &[u8] {
        self.0[1] = to_u32(self.0.len() - 2);
        bytemuck::cast_slice(&self.0)
    }
}

/// A message that was received: its words are read one by one, its bytes are what follows them.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u32,
    words: &'a [u8],
    pub(crate) bytes: &'a [u8],
}

impl<'a> Message<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, OpsError> {
        let mut head = Self { kind: 0, words: bytes, bytes };
        let (kind, count) = (head.word()?, head.size()?);
        let (words, bytes) = head
            .words
            .split_at_checked(count.saturating_mul(WORD))
            .ok_or_else(|| invalid(count, head.words.len() / WORD))?;
        Ok(Self { kind, words, bytes })
    }

    #[inline(never)] // as `Words::push`
    pub(crate) fn word(&mut self) -> Result<u32, OpsError> {
        let (word, rest) = self.words.split_first_chunk().ok_or_else(|| invalid(1, 0))?;
        self.words = rest;
        Ok(u32::from_ne_bytes(*word))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn size(&mut self) -> Result<usize, OpsError> {
        Ok(self.word()? as usize)
    }
}

fn invalid(expected: usize, found: usize) -> OpsError {
    OpsError::Length { what: "words of a message to a worker", expected, found }
}

//! Turns of texts that are tokenized: bytes of one text, and of all at once.
//!
//! A tokenizer takes some hundred bytes of memory for each byte of a text. So texts have a bound that
//! holds before they are tokenized, and wait for each other. Short ones do not wait for long ones.

use std::{io, sync::Arc};

use setun::{Engine, Message, Prompt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Bytes of a text that may be tokenized whatever the context is: texts are counted to be cut.
const ALWAYS: usize = 1 << 20;

/// Bytes that a token stands for. No usual vocabulary has longer ones.
const BYTES_A_TOKEN: usize = 256;

/// Bytes of a text that is short.
const SHORT: usize = 1 << 16;

/// Bytes of a place.
const PLACE: usize = 1 << 10;

/// Places of short texts that are tokenized at once, and as many of long ones.
const PLACES: u32 = 2048;

/// The places of texts that are tokenized.
#[derive(Debug)]
pub(crate) struct Tokenizing {
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

/// Places of texts, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _places: Option<OwnedSemaphorePermit>,
}

impl Default for Tokenizing {
    fn default() -> Self {
        let places = || Arc::new(Semaphore::new(PLACES as usize));
        Self { short: places(), long: places() }
    }
}

impl Tokenizing {
    /// Waits for the turn of texts of these bytes.
    pub(crate) async fn turn(&self, bytes: usize) -> Turn {
        let places = if bytes <= SHORT { &self.short } else { &self.long };
        let count = u32::try_from(bytes.div_ceil(PLACE)).unwrap_or(PLACES).clamp(1, PLACES);
        // It is never closed.
        Turn { _places: Arc::clone(places).acquire_many_owned(count).await.ok() }
    }

    /// The same for texts, each of which has the bound of its model.
    pub(crate) async fn turn_of(
        &self,
        engine: &Engine,
        texts: impl IntoIterator<Item = usize>,
        field: &str,
    ) -> Result<Turn, ApiError> {
        let (most, mut all) = (max_bytes(engine), 0_usize);
        for found in texts {
            if found > most {
                return Err(ApiError::text_too_long(field, found, most));
            }
            all = all.saturating_add(found);
        }
        Ok(self.turn(all).await)
    }
}

/// Most bytes of a text for a model.
pub(crate) fn max_bytes(engine: &Engine) -> usize {
    engine.context_length().saturating_mul(BYTES_A_TOKEN).max(ALWAYS)
}

/// Bytes of the texts of a prompt, before its template. Tokens have none to read.
pub(crate) fn prompt_bytes(prompt: &Prompt) -> usize {
    match prompt {
        Prompt::Text(text) => text.len(),
        Prompt::Tokens(_) => 0,
        Prompt::Chat(messages) => conversation_bytes(messages),
    }
}

/// Bytes of a conversation, as JSON.
pub(crate) fn conversation_bytes(messages: &[Message]) -> usize {
    let mut count = Count(0);
    // Each key is a string, and nothing is written that could fail.
    let _ = serde_json::to_writer(&mut count, messages);
    count.0
}

/// Counts bytes.
struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use futures::FutureExt;

    /// Bytes that all places hold.
    const AT_ONCE: usize = PLACES as usize * PLACE;

    #[test]
    fn long_texts_wait_for_each_other_and_short_ones_for_neither() {
        let tokenizing = Tokenizing::default();
        let now = |bytes| tokenizing.turn(bytes).now_or_never();
        let first = now(AT_ONCE / 2).expect("there is room");
        let second = now(AT_ONCE / 2).expect("there is room");
        let mut third = pin!(tokenizing.turn(SHORT + 1));
        assert!((&mut third).now_or_never().is_none());
        let short: Vec<_> = (0..AT_ONCE / SHORT).map(|_| now(SHORT).expect("a place")).collect();
        assert!(now(0).is_none(), "short ones have a bound, too");
        drop((short, first));
        assert!((&mut third).now_or_never().is_some());
        drop(second);
        assert!(now(usize::MAX).is_some(), "the longest takes all places, and no more");
    }

    #[test]
    fn a_conversation_has_the_bytes_of_all_its_fields() {
        let messages = vec![Message::user("a".repeat(100)), Message::assistant("b".repeat(50))];
        assert!((150..300).contains(&prompt_bytes(&Prompt::Chat(messages))));
        assert_eq!(prompt_bytes(&Prompt::Text("abc".into())), 3);
    }
}

//! Requests and answers of batch files, as `OpenAI`'s batch API has them
//! (<https://platform.openai.com/docs/guides/batch>): a JSON object a line, in and out.
//!
//! `setun batch run --requests` and the batches of `setun serve` share this, so that the same request has
//! the same answer line from both.

mod answer;
mod request;

pub use answer::{AnswerTokens, BatchOutcome, answer_line, settled};
pub use request::{BatchLineError, BatchRequest, PreparedRequest, URLS, refusal, texts_of};

/// Characters of an id.
const ID_LENGTH: usize = 24;

/// The id of what has this key: the beginning of its SHA-256 in hexadecimal digits.
#[must_use]
pub fn id_of(key: &str) -> String {
    use sha2::{Digest, Sha256};

    let digit = |value: u8| char::from_digit(u32::from(value), 16);
    let hash = Sha256::digest(key);
    let digits = hash.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.flatten().take(ID_LENGTH).collect()
}

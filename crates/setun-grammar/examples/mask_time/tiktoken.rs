//! A vocabulary in the format of `tiktoken`.

use setun_text::{TextError, Tokenizer};

/// The tokens of a file that has one a line: its bytes in base 64, and its number. One more ends
/// a text.
pub(crate) struct Tiktoken(Vec<Vec<u8>>);

impl Tiktoken {
    pub(crate) fn new(file: &str) -> Self {
        let token = |line: &str| bytes(line.split(' ').next().unwrap_or_default());
        Self(file.lines().map(token).collect())
    }
}

fn bytes(base64: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (vec![], 0_u32, 0);
    for digit in base64.bytes() {
        let Some(value) = DIGITS.iter().position(|&known| known == digit) else { break };
        bits = bits << 6 | u32::try_from(value).unwrap_or(0);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count).to_le_bytes()[0]);
        }
    }
    bytes
}

impl Tokenizer for Tiktoken {
    fn encode(&self, text: &str, _: bool) -> Result<Vec<u32>, TextError> {
        let token = |byte: u8| self.0.iter().position(|token| *token == [byte]);
        Ok(text.bytes().filter_map(token).filter_map(|id| u32::try_from(id).ok()).collect())
    }
    fn decode(&self, ids: &[u32], _: bool) -> Result<String, TextError> {
        let bytes: Vec<u8> = ids.iter().filter_map(|&id| self.token_bytes(id)).flatten().collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
    fn vocab_size(&self) -> usize {
        self.0.len() + 1
    }
    fn token_to_id(&self, _: &str) -> Option<u32> {
        None
    }
    fn id_to_token(&self, id: u32) -> Option<String> {
        (id as usize == self.0.len()).then(|| "<end>".to_owned())
    }
    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.0.get(id as usize).cloned()
    }
}

//! A tokenizer's tokens as bytes, to be handed to a grammar in another module.

use crate::Tokenizer;

/// The most tokens that a table has words of.
const MAX_TOKENS: usize = 1 << 20;

/// The lowest bit of a word's length: set where the word is a name.
const NAME: u32 = 1;

/// What each token of a vocabulary adds to a text, and the tokens that end one.
///
/// A module that does not have the tokenizer is handed [`Self::to_bytes`]: in words of 32 bits,
/// the lowest byte first, the size of the vocabulary, the number of end tokens and their ids; then
/// for each token twice its word's length, one more where it is a name, and the word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenTable {
    tokens: usize,
    end_tokens: Vec<u32>,
    words: Vec<Word>, // [min(tokens, MAX_TOKENS)]
    text: Vec<u8>,    // of all words
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    end: usize, // in the text; it begins where the one before it ends
    is_name: bool,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenWord<'a> {
    /// The bytes that it adds to a text.
    Bytes(&'a [u8]),
    /// It adds nothing: it is special, or ends the text. Its name, or nothing if it has none.
    Name(&'a [u8]),
}

impl TokenTable {
    /// Asks a tokenizer for the bytes of each of its tokens. Those of `end_tokens` end a text
    /// wherever they come, and add nothing to it.
    ///
    /// Of more than 2^20 tokens, the most that a grammar takes, the others have no words.
    #[must_use]
    pub fn new(tokenizer: &dyn Tokenizer, end_tokens: &[u32]) -> Self {
        let tokens = tokenizer.vocab_size();
        let (mut words, mut text) = (vec![], vec![]);
        for id in (0..u32::MAX).take(tokens.min(MAX_TOKENS)) {
            let bytes = tokenizer.token_bytes(id).filter(|_| !end_tokens.contains(&id));
            let is_name = bytes.is_none();
            let name = || tokenizer.id_to_token(id).unwrap_or_default().into_bytes();
            text.extend(bytes.unwrap_or_else(name));
            words.push(Word { end: text.len(), is_name });
        }
        Self { tokens, end_tokens: end_tokens.to_vec(), words, text }
    }

    /// One more than the highest id.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The tokens that end a text.
    #[must_use]
    pub fn end_tokens(&self) -> &[u32] {
        &self.end_tokens
    }

    /// What the tokens are, by their ids.
    pub fn words(&self) -> impl Iterator<Item = TokenWord<'_>> {
        let starts = std::iter::once(0).chain(self.words.iter().map(|word| word.end));
        starts.zip(&self.words).map(|(start, word)| {
            let bytes = self.text.get(start..word.end).unwrap_or_default();
            if word.is_name { TokenWord::Name(bytes) } else { TokenWord::Bytes(bytes) }
        })
    }

    /// The table as bytes, for [`Self::from_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = Vec::with_capacity(8 + 4 * self.words.len() + self.text.len());
        bytes.extend(number(self.tokens));
        bytes.extend(number(self.end_tokens.len()));
        bytes.extend(self.end_tokens.iter().flat_map(|token| token.to_le_bytes()));
        for word in self.words() {
            let (word, name) = match word {
                TokenWord::Bytes(word) => (word, 0),
                TokenWord::Name(word) => (word, NAME),
            };
            bytes.extend(number(2 * word.len() + name as usize));
            bytes.extend(word);
        }
        bytes
    }

    /// The table that [`Self::to_bytes`] gave these bytes of; none if they are damaged.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let tokens = take_number(&mut rest)? as usize;
        let count = take_number(&mut rest)?;
        let end_tokens = (0..count).map(|_| take_number(&mut rest)).collect::<Option<_>>()?;
        let (mut words, mut text) = (vec![], vec![]);
        for _ in 0..tokens.min(MAX_TOKENS) {
            let length = take_number(&mut rest)?;
            let (word, after) = rest.split_at_checked((length / 2) as usize)?;
            text.extend(word);
            rest = after;
            words.push(Word { end: text.len(), is_name: length & NAME != 0 });
        }
        rest.is_empty().then_some(Self { tokens, end_tokens, words, text })
    }
}

fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextError;

    /// `a`, nothing, `<end>` that has bytes, `<name>`, a byte that is no character.
    struct Few;

    impl Tokenizer for Few {
        fn encode(&self, _: &str, _: bool) -> Result<Vec<u32>, TextError> {
            Ok(vec![])
        }
        fn decode(&self, _: &[u32], _: bool) -> Result<String, TextError> {
            Ok(String::new())
        }
        fn vocab_size(&self) -> usize {
            5
        }
        fn token_to_id(&self, _: &str) -> Option<u32> {
            None
        }
        fn id_to_token(&self, id: u32) -> Option<String> {
            ["a", "", "<end>", "<name>"].get(id as usize).map(|&name| name.to_owned())
        }
        fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
            match id {
                0 => Some(b"a".to_vec()),
                2 => Some(b"the end".to_vec()),
                4 => Some(vec![0xff]),
                _ => None,
            }
        }
    }

    #[test]
    fn end_tokens_and_special_ones_have_names() {
        let table = TokenTable::new(&Few, &[2]);
        let words = [
            TokenWord::Bytes(b"a"),
            TokenWord::Name(b""),
            TokenWord::Name(b"<end>"),
            TokenWord::Name(b"<name>"),
            TokenWord::Bytes(&[0xff]),
        ];
        assert_eq!(table.words().collect::<Vec<_>>(), words);
        assert_eq!((table.tokens(), table.end_tokens()), (5, &[2][..]));
    }

    #[test]
    fn comes_back_from_its_bytes() {
        let table = TokenTable::new(&Few, &[2, 7]);
        let bytes = table.to_bytes();
        assert_eq!(TokenTable::from_bytes(&bytes), Some(table));
        for length in 0..bytes.len() {
            assert_eq!(TokenTable::from_bytes(&bytes[..length]), None, "{length}");
        }
        assert_eq!(TokenTable::from_bytes(&[bytes, vec![0]].concat()), None);
    }

    #[test]
    fn numbers_that_lie_are_refused() {
        assert_eq!(TokenTable::from_bytes(&[0xff; 8]), None);
        assert_eq!(TokenTable::from_bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), None);
    }
}

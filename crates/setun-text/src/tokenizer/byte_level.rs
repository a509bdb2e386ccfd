//! GPT-2's pre-tokenizer for ASCII text.
//!
//! The `tokenizers` crate compiles a regular expression with Unicode's classes for it, which takes longer than
//! all else before the first token where WebAssembly is interpreted at first. ASCII text needs no such classes.

use tokenizers::{
    NormalizedString, Offsets, PreTokenizedString, SplitDelimiterBehavior,
    pre_tokenizers::byte_level::ByteLevel, tokenizer::pattern::Pattern,
};

/// Suffixes that are pieces of their own, in the order in which they are tried.
const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// Splits text and writes its bytes by GPT-2's alphabet, as the stage does. All of the text has to be ASCII.
pub(super) fn pre_tokenize_ascii(
    stage: ByteLevel,
    text: &mut PreTokenizedString,
) -> tokenizers::Result<()> {
    text.split(|_, mut piece| {
        if stage.add_prefix_space && !piece.get().starts_with(' ') {
            piece.prepend(" ");
        }
        if stage.use_regex {
            piece.split(AsciiPieces, SplitDelimiterBehavior::Isolated)
        } else {
            Ok(vec![piece])
        }
    })?;
    text.normalize(|piece: &mut NormalizedString| {
        let letters: Vec<_> = piece.get().bytes().map(|byte| (letter(byte), 0)).collect();
        piece.transform(letters, 0);
        Ok(())
    })
}

/// The letter of an ASCII byte: bytes that do not print have those from U+0100 on.
fn letter(byte: u8) -> char {
    match byte {
        0..=b' ' => char::from_u32(0x100 + u32::from(byte)).unwrap_or_default(),
        0x7f => '\u{121}',
        _ => char::from(byte),
    }
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
struct AsciiPieces;

impl Pattern for AsciiPieces {
    fn find_matches(&self, inside: &str) -> tokenizers::Result<Vec<(Offsets, bool)>> {
        if inside.is_empty() {
            return Ok(vec![((0, 0), false)]);
        }
        let (mut matches, mut start) = (vec![], 0);
        while let Some(rest) = inside.get(start..).filter(|rest| !rest.is_empty()) {
            let end = start + first_piece(rest);
            matches.push(((start, end), true));
            start = end;
        }
        Ok(matches)
    }
}

/// Bytes of the first piece of a text, which is not empty.
fn first_piece(text: &str) -> usize {
    if let Some(contraction) = CONTRACTIONS.iter().find(|known| text.starts_with(**known)) {
        return contraction.len();
    }
    let word = text.strip_prefix(' ').unwrap_or(text);
    let space = text.len() - word.len();
    for is_of in [is_letter, is_digit, is_sign] {
        match run(word, is_of) {
            0 => {}
            length => return space + length,
        }
    }
    // The last space before a word belongs to the word, if there are others.
    match run(text, is_space) {
        all if all == text.len() || all == 1 => all,
        all => all - 1,
    }
}

/// Bytes at the start of a text that are of a class.
fn run(text: &str, is_of: fn(u8) -> bool) -> usize {
    text.bytes().take_while(|&byte| is_of(byte)).count()
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn is_sign(byte: u8) -> bool {
    !is_space(byte) && !byte.is_ascii_alphanumeric()
}

/// White space of Unicode: other than in `u8::is_ascii_whitespace`, the vertical tab is some.
fn is_space(byte: u8) -> bool {
    char::from(byte).is_whitespace()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizer as _};

    use super::*;

    const REFERENTIALS: [OffsetReferential; 2] =
        [OffsetReferential::Original, OffsetReferential::Normalized];

    /// Compares the pieces of a text, their letters and their places with the crate's own.
    fn assert_same(text: &str) {
        for options in 0..4 {
            let stage = ByteLevel::new(options & 1 == 1, true, options & 2 == 2);
            let (mut found, mut expected) =
                (PreTokenizedString::from(text), PreTokenizedString::from(text));
            pre_tokenize_ascii(stage, &mut found).expect("pieces");
            stage.pre_tokenize(&mut expected).expect("pieces");
            for referential in REFERENTIALS {
                let pieces = |of: &PreTokenizedString| -> Vec<(String, Offsets)> {
                    let splits = of.get_splits(referential, OffsetType::Byte);
                    splits.into_iter().map(|(piece, at, _)| (piece.to_owned(), at)).collect()
                };
                assert_eq!(pieces(&found), pieces(&expected), "{text:?}");
            }
        }
    }

    #[test]
    fn every_ascii_character_and_pair_is_as_the_crate_has_it() {
        assert_same("");
        for first in 0..128_u8 {
            assert_same(&char::from(first).to_string());
            for second in 0..128_u8 {
                assert_same(&format!("{}{}", char::from(first), char::from(second)));
            }
        }
    }

    proptest! {
        #[test]
        fn ascii_texts_are_as_the_crate_has_them(
            text in "([ \\n\\t\\x0b\\r]{1,3}|'(s|t|re|ve|m|ll|d|S|r|l|x)|[a-zA-Z]{1,3}|[0-9]{1,3}|[!-/'_\\x00\\x1c\\x7f]{1,3}){0,8}"
        ) {
            assert_same(&text);
        }
    }
}

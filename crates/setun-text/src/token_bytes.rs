//! Bytes that single tokens of a `tokenizer.json` add to a text.

use tokenizers::Decoder as _;
use tokenizers::decoders::DecoderWrapper;

/// Growth of a token by replacements: times its length, and some bytes more.
const MAX_GROWTH: usize = 4;
const SPARE_BYTES: usize = 256;

/// The bytes that a token spelt `spelling` adds to a text that has begun.
///
/// `None` where the decoder gives a token different bytes in different places, or puts something
/// between tokens, as one for whole words does; or where it makes much more of the token.
pub(crate) fn token_bytes(decoder: &DecoderWrapper, spelling: String) -> Option<Vec<u8>> {
    let steps = match decoder {
        DecoderWrapper::Sequence(sequence) => sequence.get_decoders(),
        single => std::slice::from_ref(single),
    };
    let limit = spelling.len() * MAX_GROWTH + SPARE_BYTES;
    let mut piece = Piece::Text(spelling);
    let mut fused = false;
    for step in steps {
        piece = match (step, piece) {
            // What trims the ends of a text as a whole changes nothing inside it.
            (DecoderWrapper::Strip(_), piece) if fused => piece,
            (DecoderWrapper::Fuse(_), piece) => {
                fused = true;
                piece
            }
            (_, Piece::Bytes(bytes)) => Piece::Bytes(bytes),
            (step, Piece::Text(text)) if text.len() <= limit => decode_step(step, text)?,
            _ => return None,
        };
    }
    Some(match piece {
        Piece::Text(text) => text.into_bytes(),
        Piece::Bytes(bytes) => bytes,
    })
}

/// A token on its way through the steps of a decoder.
enum Piece {
    Text(String),
    /// Bytes, which alone may be no character, and which no later step changes.
    Bytes(Vec<u8>),
}

fn decode_step(step: &DecoderWrapper, text: String) -> Option<Piece> {
    match step {
        DecoderWrapper::ByteLevel(_) => Some(Piece::Bytes(byte_level(&text))),
        DecoderWrapper::ByteFallback(_) => Some(match spelt_byte(&text) {
            Some(byte) => Piece::Bytes(vec![byte]),
            None => Piece::Text(text),
        }),
        DecoderWrapper::Metaspace(metaspace) => {
            Some(Piece::Text(text.replace(metaspace.get_replacement(), " ")))
        }
        DecoderWrapper::Replace(_) | DecoderWrapper::Strip(_) => {
            step.decode_chain(vec![text]).ok().map(|parts| Piece::Text(parts.concat()))
        }
        // The first of these is handled above; the others know words, not bytes.
        DecoderWrapper::Fuse(_)
        | DecoderWrapper::Sequence(_)
        | DecoderWrapper::BPE(_)
        | DecoderWrapper::WordPiece(_)
        | DecoderWrapper::CTC(_) => None,
    }
}

/// The byte of a token spelt `<0xNN>`.
pub(crate) fn spelt_byte(spelling: &str) -> Option<u8> {
    let digits = spelling.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
}

/// The bytes that GPT-2's alphabet of visible characters stands for. A spelling with any other
/// character is text as it is: such are tokens that were added to a vocabulary.
fn byte_level(spelling: &str) -> Vec<u8> {
    let bytes: Option<Vec<u8>> = spelling.chars().map(alphabet_byte).collect();
    bytes.unwrap_or_else(|| spelling.as_bytes().to_vec())
}

/// The byte that a character of GPT-2's alphabet stands for.
///
/// Bytes that are visible in Latin-1 stand for themselves; the others, ascending, are the
/// characters from U+0100 on.
fn alphabet_byte(character: char) -> Option<u8> {
    let code = u32::from(character);
    if code < 0x100 {
        let byte = u8::try_from(code).ok()?;
        return is_visible(byte).then_some(byte);
    }
    let place = usize::try_from(code - 0x100).ok()?;
    (0..=u8::MAX).filter(|&byte| !is_visible(byte)).nth(place)
}

fn is_visible(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(decoder: &str, spelling: &str) -> Option<Vec<u8>> {
        let decoder: DecoderWrapper = serde_json::from_str(decoder).expect("a decoder");
        token_bytes(&decoder, spelling.to_owned())
    }

    #[test]
    fn the_alphabet_has_every_byte_once() {
        let mut found: Vec<u8> =
            (0..=0x143).filter_map(char::from_u32).filter_map(alphabet_byte).collect();
        found.sort_unstable();
        assert_eq!(found, (0..=u8::MAX).collect::<Vec<_>>());
        assert_eq!(
            (alphabet_byte('Ġ'), alphabet_byte('Ċ'), alphabet_byte('\u{144}')),
            (Some(b' '), Some(b'\n'), None)
        );
    }

    #[test]
    fn an_added_token_is_text() {
        let decoder = r#"{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}"#;
        assert_eq!(bytes(decoder, "Ġé").expect("known"), b" \xe9");
        assert_eq!(bytes(decoder, "é and a space").expect("known"), "é and a space".as_bytes());
    }

    #[test]
    fn the_first_space_is_only_trimmed_from_a_whole_text() {
        let strip = r#"{"type": "Strip", "content": " ", "start": 1, "stop": 0}"#;
        let replace = r#"{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}"#;
        let fused = format!(
            r#"{{"type": "Sequence", "decoders": [{replace}, {{"type": "ByteFallback"}}, {{"type": "Fuse"}}, {strip}]}}"#
        );
        assert_eq!(bytes(&fused, "▁a▁").expect("known"), b" a ");
        assert_eq!(bytes(&fused, "<0xFE>").expect("known"), [0xfe]);
        assert_eq!(bytes(&fused, "<0xFEE>").expect("known"), b"<0xFEE>");
        let each = format!(r#"{{"type": "Sequence", "decoders": [{replace}, {strip}]}}"#);
        assert_eq!(bytes(&each, "▁a").expect("known"), b"a");
    }

    #[test]
    fn words_have_no_bytes_of_their_own() {
        let decoder = r###"{"type": "WordPiece", "prefix": "##", "cleanup": true}"###;
        assert_eq!(bytes(decoder, "word"), None);
    }
}

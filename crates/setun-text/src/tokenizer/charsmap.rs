//! Checks of `SentencePiece`'s map of characters, a double-array trie and the texts it leads to.
//!
//! The trie is walked without bounds: from a unit on, the next is at its base with the bits of a
//! byte changed. So each unit that a byte may lead to must have its block of 256 in the array.

/// The longest text that stands for a character; the longest of Unicode's NFKC has 33 bytes.
pub(super) const MAX_TEXT: usize = 128;

/// Units that differ in the byte that leads to them.
const BLOCK: usize = 256;

/// The mark of a unit that is a value, and no byte leads to.
const VALUE: u32 = 1 << 31;

/// Checks a map in base64; otherwise says what was found.
pub(super) fn check(base64: &str) -> Result<(), String> {
    let bytes = decode(base64).ok_or("no base64")?;
    let (size, rest) = bytes.split_first_chunk().ok_or("fewer than 4 bytes")?;
    let size = u32::from_le_bytes(*size) as usize;
    let (trie, texts) = rest
        .split_at_checked(size / 4 * 4)
        .ok_or_else(|| format!("a trie of {size} bytes where {} are left", rest.len()))?;
    let texts = std::str::from_utf8(texts).map_err(|error| error.to_string())?;
    let unit = |bytes: &[u8]| bytes.iter().rev().fold(0, |unit, &byte| unit << 8 | u32::from(byte));
    let units: Vec<u32> = trie.chunks_exact(4).map(unit).collect();
    let base = |place: usize, unit: u32| {
        let base = place ^ ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize;
        (base | (BLOCK - 1) < units.len()).then_some(base)
    };
    let beyond = |place| format!("unit {place} of a trie that leads beyond its end");
    units.first().and_then(|&root| base(0, root)).ok_or_else(|| beyond(0))?;
    for (place, &unit) in units.iter().enumerate().filter(|(_, unit)| **unit & VALUE == 0) {
        let base = base(place, unit).ok_or_else(|| beyond(place))?;
        if (unit >> 8) & 1 == 1 {
            check_text(texts, (units[base] & !VALUE) as usize)?;
        }
    }
    Ok(())
}

/// Checks the text that begins at a place and ends before a zero.
fn check_text(texts: &str, place: usize) -> Result<(), String> {
    let text = texts.get(place..).ok_or_else(|| format!("no text at byte {place}"))?.as_bytes();
    let most = &text[..text.len().min(MAX_TEXT + 1)];
    match most.iter().position(|&byte| byte == 0).unwrap_or(most.len()) {
        ..=MAX_TEXT => Ok(()),
        _ => Err(format!("a text of more than {MAX_TEXT} bytes at byte {place}")),
    }
}

/// The bytes of a text in base64 with padding, as strict as the reader after it.
fn decode(text: &str) -> Option<Vec<u8>> {
    let (groups, []) = text.as_bytes().as_chunks::<4>() else { return None };
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (index, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|&&letter| letter == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 < groups.len()) {
            return None;
        }
        let letters = &group[..4 - padding];
        let digits = letters.iter().map(|&letter| digit(letter)).collect::<Option<Vec<_>>>()?;
        let word = digits.iter().fold(0, |word, digit| word << 6 | digit) << (6 * padding);
        let [_, three @ ..] = word.to_be_bytes();
        let (kept, rest) = three.split_at(3 - padding);
        if rest.iter().any(|&byte| byte != 0) {
            return None;
        }
        bytes.extend(kept);
    }
    Some(bytes)
}

fn digit(letter: u8) -> Option<u32> {
    Some(u32::from(match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_its_definition_has_it() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9v+/8=", b"foo\xfb\xff"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(bytes), "{text}");
        }
        for text in ["Z", "Zg", "Zg=", "Zh==", "Z===", "====", "Zg==Zg==", "Zm 9", "Zm9-"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}

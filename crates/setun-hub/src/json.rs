//! JSON of hubs and of files that people edit.

use serde::de::DeserializeOwned;

/// Reads a value, with or without the byte order mark that some editors and servers write before it.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_order_mark_is_passed_over() {
        for text in ["\u{feff}[1, 2]", "[1, 2]"] {
            assert_eq!(read::<Vec<u8>>(text.as_bytes()).unwrap(), [1, 2]);
        }
        read::<Vec<u8>>("\u{feff}\u{feff}[1]".as_bytes()).unwrap_err();
    }
}

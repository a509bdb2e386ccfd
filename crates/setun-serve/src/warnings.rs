//! Warnings of an answer: what its request asked for and it does not hold to.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The header of a warning.
const WARNING: HeaderName = HeaderName::from_static("x-setun-warning");

/// The most warnings of an answer. Proxies bound all headers together.
const MAX_WARNINGS: usize = 8;

/// The most characters of one.
const MAX_CHARACTERS: usize = 300;

/// The warnings of a request, for those who answer it and who write the answer's headers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    pub(crate) fn add(&self, warnings: &[String]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(warnings);
    }

    #[cfg(test)]
    pub(crate) fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds them to the headers of the answer.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in all.iter().take(MAX_WARNINGS) {
            if let Ok(value) = HeaderValue::try_from(plain(warning)) {
                headers.append(WARNING, value);
            }
        }
    }
}

/// A sentence in the characters of headers.
fn plain(warning: &str) -> String {
    let escaped = warning.chars().flat_map(|letter| {
        let is_plain = letter == ' ' || letter.is_ascii_graphic();
        let (plain, escaped) =
            if is_plain { (Some(letter), None) } else { (None, Some(letter.escape_default())) };
        plain.into_iter().chain(escaped.into_iter().flatten())
    });
    let mut text: String = escaped.take(MAX_CHARACTERS + 1).collect();
    if text.len() > MAX_CHARACTERS {
        text.truncate(MAX_CHARACTERS - 3);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_headers_of_bounded_length_and_number() {
        let warnings = Warnings::default();
        warnings.add(&["the pattern `ä\n`".to_owned(), "a".repeat(500)]);
        warnings.add(&vec!["b".to_owned(); 20]);
        let mut headers = HeaderMap::new();
        warnings.write(&mut headers);
        let all: Vec<_> = headers.get_all(WARNING).iter().collect();
        assert_eq!(all.len(), MAX_WARNINGS);
        assert_eq!(all[0], "the pattern `\\u{e4}\\n`");
        assert_eq!(all[1].len(), MAX_CHARACTERS);
    }
}

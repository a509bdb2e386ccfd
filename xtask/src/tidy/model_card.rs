//! The embedded model's card: its digest and size.

use std::fs;

use anyhow::{Context, Result};

use super::Findings;
use crate::embed_model::sha256;
use crate::files::read;
use crate::shell::root;

const MODEL: &str = "crates/setun/embedded/stories.safetensors";
const CARD: &str = "crates/setun/embedded/MODEL_CARD.md";

pub(super) fn check() -> Result<Findings> {
    let model = fs::read(root().join(MODEL)).with_context(|| format!("cannot read {MODEL}"))?;
    Ok(finding(&sha256(&model), model.len(), &read(CARD)?))
}

fn finding(digest: &str, size: usize, card: &str) -> Findings {
    let mut findings = Findings::new();
    if !card.contains(digest) {
        findings.push(format!("{CARD} does not give the model's SHA-256, {digest}"));
    }
    if !card.contains(&format!("{} bytes", with_commas(size))) {
        findings
            .push(format!("{CARD} does not give the model's size, {} bytes", with_commas(size)));
    }
    findings
}

fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_and_size_are_compared() {
        let card = "SHA-256 `abc123`, 3,307,564 bytes";
        assert!(finding("abc123", 3_307_564, card).is_empty());
        assert_eq!(finding("abc124", 3_307_565, card).len(), 2);
        assert_eq!(with_commas(12), "12");
        assert_eq!(with_commas(123_456), "123,456");
    }
}

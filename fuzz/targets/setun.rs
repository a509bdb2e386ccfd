//! A `.setun` file as it is, and with hashes that fit, or nothing behind them would be reached.

#![no_main]

use std::ops::Range;

use serde_json::Value;
use setun_fuzz::read_file;
use sha2::{Digest, Sha256};

const FILE: &str = "model.setun";

/// Magic, version and length of the manifest, then the hash of these and the manifest.
const HASHED: Range<usize> = 0..16;
const HASH: Range<usize> = 16..48;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    read_file(FILE, bytes);
    if let Some(sealed) = sealed(bytes) {
        read_file(FILE, &sealed);
    }
});

/// The same with the hashes of its own chunks and manifest, if it has such places.
fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(u64::from_le_bytes(*bytes.get(8..)?.first_chunk()?)).ok()?;
    let manifest = HASH.end..HASH.end.checked_add(length)?;
    let value: Value = serde_json::from_slice(bytes.get(manifest.clone())?).ok()?;
    let mut sealed = bytes.to_vec();
    for chunk in value["chunks"].as_array()? {
        let number = |key: &str| usize::try_from(chunk[key].as_u64()?).ok();
        let start = number("offset")?;
        let stored = bytes.get(start..start.checked_add(number("stored")?)?)?;
        let hash = hex(&Sha256::digest(stored));
        replace(&mut sealed[manifest.clone()], chunk["sha256"].as_str()?, &hash);
    }
    let hash = Sha256::new().chain_update(&sealed[HASHED]).chain_update(&sealed[manifest]);
    sealed[HASH].copy_from_slice(&hash.finalize());
    Some(sealed)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Replaces a text by another of the same length, where it stands first.
fn replace(bytes: &mut [u8], from: &str, to: &str) {
    let found = bytes.windows(from.len().max(1)).position(|window| window == from.as_bytes());
    if let Some(at) = found.filter(|_| from.len() == to.len()) {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
}

//! A saved session as it is, and with a hash that fits, or nothing behind it would be reached.

#![no_main]

use setun_fuzz::subjects::session::run;
use sha2::{Digest, Sha256};

/// Bytes of the hash at the end.
const HASH_BYTES: usize = 32;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    run(bytes);
    if let Some(end) = bytes.len().checked_sub(HASH_BYTES) {
        let contents = &bytes[..end];
        run(&[contents, &Sha256::digest(contents)[..]].concat());
    }
});

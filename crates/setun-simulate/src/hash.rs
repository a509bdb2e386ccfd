//! Hashes of texts and of chains of blocks, and maps keyed by them.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map whose keys are hashes already.
pub(crate) type HashKeyed<V> = HashMap<u64, V, BuildHasherDefault<Unhashed>>;

/// The hasher of [`HashKeyed`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unhashed(u64);

impl Hasher for Unhashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Spreads the bits of a number: the output function of `SplitMix64` (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", 2014).
pub(crate) fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A hash of two numbers, in this order.
pub(crate) fn combine(first: u64, second: u64) -> u64 {
    mix(mix(first.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ second)
}

/// A hash of a text.
pub(crate) fn of_text(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |hash, byte| combine(hash, u64::from(byte)))
}

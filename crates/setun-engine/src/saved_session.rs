//! A saved session as bytes; all numbers are little-endian.
//!
//! ```text
//! "setun session 2\n"                16 bytes
//! fingerprint of the model           32 bytes
//! positions of a block               u32
//! bytes of a block                   u64
//! number of tokens, number of blocks u32, u32
//! bytes of a recurrent state         u64; 0 where there is none
//! tokens                             u32 each
//! blocks, as the backend gives them
//! the state after these blocks, as the backend gives it
//! SHA-256 of all before              32 bytes
//! ```
//!
//! Version 1 has no state, nor its size. It is read as well.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use setun_model::ModelError;
use setun_ops::OpsError;
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Of the version that is written.
const MAGIC: &[u8; 16] = b"setun session 2\n";

/// Of a version that is read.
const MAGIC_1: &[u8; 16] = b"setun session 1\n";

const HASH_BYTES: usize = 32;

/// Bytes of blocks from which on they are hashed by a thread of its own: far more than one costs.
#[cfg(not(target_family = "wasm"))]
const SHARED_BYTES: usize = 4 << 20;

type Hash = [u8; HASH_BYTES];

/// Bytes before the tokens, and those of version 1.
const HEADER_BYTES: usize = HEADER_1_BYTES + 8;
const HEADER_1_BYTES: usize = 16 + HASH_BYTES + 4 + 8 + 4 + 4;

/// A session outside of an engine.
#[derive(Debug)]
pub(crate) struct Saved {
    /// Which model computed the blocks, by what it answers.
    pub(crate) fingerprint: Hash,
    pub(crate) tokens: Vec<u32>,
    pub(crate) block_positions: usize,
    pub(crate) block_bytes: usize,
    /// Keys and values of the first tokens, in whole blocks.
    pub(crate) blocks: Vec<u8>,
    /// The recurrent state after them; empty where there is none.
    pub(crate) state: Vec<u8>,
}

impl Saved {
    /// Number of blocks.
    pub(crate) fn count(&self) -> usize {
        self.blocks.len().checked_div(self.block_bytes).unwrap_or(0)
    }

    /// # Errors
    ///
    /// If there is no memory for them.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let contents = 4 * self.tokens.len() + self.blocks.len() + self.state.len();
        let mut bytes = with_capacity(HEADER_BYTES + contents + HASH_BYTES)?;
        bytes.extend(MAGIC);
        bytes.extend(self.fingerprint);
        bytes.extend(narrow(self.block_positions).to_le_bytes());
        bytes.extend((self.block_bytes as u64).to_le_bytes());
        bytes.extend(narrow(self.tokens.len()).to_le_bytes());
        bytes.extend(narrow(self.count()).to_le_bytes());
        bytes.extend((self.state.len() as u64).to_le_bytes());
        self.tokens.iter().for_each(|token| bytes.extend(token.to_le_bytes()));
        bytes.extend_from_slice(&self.blocks);
        bytes.extend_from_slice(&self.state);
        bytes.extend(digest(&bytes));
        Ok(bytes)
    }
}

/// What [`Saved::to_bytes`] wrote, as it came. Its lengths agree; its hash may not.
#[derive(Debug)]
pub(crate) struct SavedBytes {
    bytes: Vec<u8>,
    pub(crate) fingerprint: Hash,
    pub(crate) tokens: Vec<u32>,
    pub(crate) block_positions: usize,
    pub(crate) block_bytes: usize,
    blocks: Range<usize>,
    state: Range<usize>,
    is_whole: OnceLock<bool>,
}

impl SavedBytes {
    /// Reads all but the hash, which [`check`](Self::check) does.
    ///
    /// # Errors
    ///
    /// If the bytes are of another kind, or of another length than they say.
    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Self, Error> {
        let header_bytes = if bytes.starts_with(MAGIC) {
            HEADER_BYTES
        } else if bytes.starts_with(MAGIC_1) {
            HEADER_1_BYTES
        } else {
            let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(MAGIC.len())]);
            let expected = "`setun session 1` or `setun session 2`";
            return Err(wrong("its beginning", expected, format!("`{begin}`")));
        };
        let least = header_bytes + HASH_BYTES;
        let Some(length) = bytes.len().checked_sub(least) else {
            return Err(wrong(
                "its length",
                "a header and a hash",
                format!("{} bytes", bytes.len()),
            ));
        };
        let mut header = Fields(&bytes[MAGIC.len()..header_bytes]);
        let fingerprint = header.take();
        let block_positions = u32::from_le_bytes(header.take()) as usize;
        let block_bytes = u64::from_le_bytes(header.take());
        let tokens = u32::from_le_bytes(header.take()) as usize;
        let blocks = u32::from_le_bytes(header.take());
        let has_state = header_bytes == HEADER_BYTES;
        let state = if has_state { u64::from_le_bytes(header.take()) } else { 0 };
        let of_blocks = u128::from(block_bytes) * u128::from(blocks);
        let said = of_blocks + 4 * tokens as u128 + u128::from(state);
        let is_within = blocks as usize * block_positions <= tokens;
        if said != length as u128 || !is_within || (blocks > 0 && block_positions == 0) {
            let found = format!("{length} bytes");
            let expected = "as many bytes as its tokens and blocks have";
            return Err(wrong("its length", expected, found));
        }
        // All are within the bytes, whose number has been compared.
        let state = usize::try_from(state).unwrap_or(0);
        let end = bytes.len() - HASH_BYTES;
        let blocks = header_bytes + 4 * tokens..end - state;
        let token = |bytes: &[u8]| u32::from_le_bytes(Fields(bytes).take());
        Ok(Self {
            fingerprint,
            tokens: bytes[header_bytes..blocks.start].chunks_exact(4).map(token).collect(),
            block_positions,
            block_bytes: usize::try_from(block_bytes).unwrap_or(usize::MAX),
            blocks,
            state: end - state..end,
            is_whole: OnceLock::new(),
            bytes,
        })
    }

    /// Begins the hash on a thread of its own, where that is worth it.
    pub(crate) fn hash_beside(self: &Arc<Self>) {
        #[cfg(not(target_family = "wasm"))]
        if self.blocks.len() >= SHARED_BYTES {
            let this = Arc::clone(self);
            // Without a thread, whoever asks computes it.
            let _ = std::thread::Builder::new().spawn(move || this.is_whole());
        }
    }

    /// Whether its hash is that of its bytes. Waits for it.
    pub(crate) fn is_whole(&self) -> bool {
        *self.is_whole.get_or_init(|| {
            let (contents, hash) = self.bytes.split_at(self.bytes.len() - HASH_BYTES);
            digest(contents) == *hash
        })
    }

    /// # Errors
    ///
    /// If its hash is not that of its bytes.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let error = || wrong("its hash", "that of its bytes", "another".into());
        self.is_whole().then_some(()).ok_or_else(error)
    }

    /// Keys and values of the first tokens, in whole blocks.
    pub(crate) fn blocks(&self) -> &[u8] {
        &self.bytes[self.blocks.clone()]
    }

    /// The recurrent state after them; empty where there is none.
    pub(crate) fn state(&self) -> &[u8] {
        &self.bytes[self.state.clone()]
    }

    /// Number of blocks.
    pub(crate) fn count(&self) -> usize {
        self.blocks.len().checked_div(self.block_bytes).unwrap_or(0)
    }
}

/// An empty vector with room for this many bytes of keys and values.
///
/// # Errors
///
/// If there is no memory for them.
pub(crate) fn with_capacity(bytes: usize) -> Result<Vec<u8>, Error> {
    let mut room = vec![];
    let out_of_memory = |_| OpsError::OutOfMemory { what: "a saved session", bytes };
    room.try_reserve_exact(bytes).map_err(out_of_memory).map_err(ModelError::from)?;
    Ok(room)
}

/// SHA-256.
pub(crate) fn digest(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// What is left of a header whose length is known.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("the header has all its fields");
        self.0 = rest;
        *field
    }
}

fn wrong(what: &'static str, expected: &'static str, found: String) -> Error {
    Error::Session { what, expected, found }
}

/// Counts of tokens and blocks are below 2^32: a context has fewer.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> Saved {
        Saved {
            fingerprint: [7; 32],
            tokens: (0..9).collect(),
            block_positions: 4,
            block_bytes: 5,
            blocks: (0..10).collect(),
            state: vec![3, 1, 4],
        }
    }

    fn read(bytes: &[u8]) -> Result<Arc<SavedBytes>, Error> {
        let read = Arc::new(SavedBytes::parse(bytes.to_vec())?);
        read.hash_beside();
        read.check().map(|()| read)
    }

    #[test]
    fn bytes_give_the_session_again() {
        let empty = Saved { tokens: vec![], blocks: vec![], state: vec![], ..saved() };
        for saved in [saved(), empty] {
            let read = read(&saved.to_bytes().expect("memory")).expect("whole");
            assert_eq!((read.fingerprint, &read.tokens), (saved.fingerprint, &saved.tokens));
            assert_eq!((read.block_positions, read.block_bytes), (4, 5));
            assert_eq!((read.blocks(), read.count()), (&*saved.blocks, saved.count()));
            assert_eq!(read.state(), saved.state);
        }
    }

    #[test]
    fn the_version_without_states_is_read() {
        let saved = Saved { state: vec![], ..saved() };
        let mut bytes = saved.to_bytes().expect("memory");
        bytes[14] = b'1';
        bytes.drain(HEADER_1_BYTES..HEADER_BYTES);
        bytes.truncate(bytes.len() - HASH_BYTES);
        bytes.extend(digest(&bytes));
        let read = read(&bytes).expect("whole");
        assert_eq!((&read.tokens, read.blocks()), (&saved.tokens, &*saved.blocks));
        assert!(read.state().is_empty());
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_refused() {
        let bytes = saved().to_bytes().expect("memory");
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_err(), "{len} bytes");
        }
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&flipped).is_err(), "bit {bit}");
        }
        let mut longer = bytes;
        longer.push(0);
        let error = read(&longer).expect_err("a byte too many").to_string();
        assert!(error.contains("its length"), "{error}");
        let error = read(b"setun session 3\n").expect_err("another version").to_string();
        assert!(error.contains("setun session 1"), "{error}");
    }

    #[cfg(not(target_family = "wasm"))]
    #[test]
    fn large_ones_are_hashed_beside() {
        let blocks = vec![3; SHARED_BYTES];
        let (block_positions, block_bytes) = (4, SHARED_BYTES / 2);
        let mut bytes =
            Saved { block_positions, block_bytes, blocks, ..saved() }.to_bytes().expect("memory");
        assert_eq!(read(&bytes).expect("whole").count(), 2);
        bytes[SHARED_BYTES] ^= 1;
        let error = read(&bytes).expect_err("a flipped bit").to_string();
        assert!(error.contains("its hash"), "{error}");
    }

    #[test]
    fn more_blocks_than_tokens_are_refused_though_they_are_hashed() {
        for saved in
            [Saved { tokens: vec![1; 7], ..saved() }, Saved { block_positions: 0, ..saved() }]
        {
            assert!(read(&saved.to_bytes().expect("memory")).is_err());
        }
    }
}

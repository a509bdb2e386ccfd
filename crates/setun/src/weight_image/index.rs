//! The beginning of an image: where each part of each weight lies.
//!
//! All numbers have eight bytes, in the byte order of the machine, as the values have. The head:
//!
//! | words | meaning |
//! |---|---|
//! | 1 | `setunwi1` |
//! | 1 | 1, to know the byte order |
//! | 1 | bytes of the file |
//! | 1 | when it was written, in seconds since 1970: the time that the file system says |
//! | 1 | words of the index |
//!
//! The index follows: the length of the identity and its bytes, padded to words; the number of
//! weights; for each its numbers, and the offset and length of its parts, both lists with their
//! lengths before them.

use std::ops::Range;

use setun_ops::{
    aligned::LINE,
    image::{WeightBytes, WeightImage},
};

/// First bytes of an image of any version.
const NAME: &[u8] = b"setunwi";

/// First bytes of an image. A change of what images hold changes the last of them.
const MAGIC: [u8; WORD] = *b"setunwi1";

const ORDER: u64 = 1;

const WORD: usize = size_of::<u64>();

pub(super) const HEAD_BYTES: usize = 5 * WORD;

/// Far more than models have: some hundred bytes a weight.
const MAX_INDEX_BYTES: usize = 64 << 20;

/// The head of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHead {
    /// Of the whole file.
    pub(super) bytes: u64,
    /// When it was written. A file that anybody has written to since has another time.
    pub(super) written: u64,
    words: u64,
}

/// What a file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Head(FileHead),
    /// An image of another version or byte order, or one that ends within its head.
    OtherVersion,
    /// No image.
    Nothing,
}

impl FileHead {
    /// The head of a file, by its first [`HEAD_BYTES`].
    pub(super) fn find(file: &[u8]) -> Found {
        let head = || {
            let mut words = Words(file);
            let is_known = words.next()?.to_ne_bytes() == MAGIC && words.next()? == ORDER;
            let (bytes, written) = (words.next()?, words.next()?);
            is_known.then_some(Self { bytes, written, words: words.next()? })
        };
        match head() {
            Some(head) => Found::Head(head),
            None if file.starts_with(NAME) => Found::OtherVersion,
            None => Found::Nothing,
        }
    }

    /// Bytes of the index; none where the head says too many.
    pub(super) fn index_bytes(self) -> Option<usize> {
        let bytes = usize::try_from(self.words).ok()?.checked_mul(WORD)?;
        (bytes <= MAX_INDEX_BYTES).then_some(bytes)
    }
}

/// The weights of an index, with the places of their parts in the file, if the identity is the one
/// that is expected.
pub(super) fn read(index: &[u8], identity: &str) -> Option<Vec<WeightImage<Range<usize>>>> {
    let mut words = Words(index);
    if words.text()? != identity.as_bytes() {
        return None;
    }
    words.weights()
}

/// Whether an index is one that [`write()`] makes for an image of this many bytes: its identity names what
/// is expected, nothing follows, and the parts are in the image, aligned, one after the other.
pub(super) fn is_sound(index: &[u8], named: &str, bytes: u64) -> bool {
    let mut words = Words(index);
    let identity = words.text().and_then(|text| std::str::from_utf8(text).ok());
    let Some(weights) =
        identity.filter(|identity| identity.contains(named)).and_then(|_| words.weights())
    else {
        return false;
    };
    let mut end = HEAD_BYTES + index.len();
    let in_order = weights.iter().flat_map(|weight| &weight.parts).all(|part| {
        let is_next = part.start == end.next_multiple_of(LINE);
        end = part.end;
        is_next
    });
    in_order && end as u64 == bytes && words.0.is_empty()
}

/// Head and index of an image, and where its parts begin.
pub(super) fn write(
    identity: &str,
    weights: &[WeightBytes<'_>],
    written: u64,
) -> (Vec<u8>, Vec<u64>) {
    let numbers: usize = weights.iter().map(|weight| weight.numbers.len()).sum();
    let parts: usize = weights.iter().map(|weight| weight.parts.len()).sum();
    let words = 2 + identity.len().div_ceil(WORD) + numbers + 2 * weights.len() + 2 * parts;
    let mut end = (HEAD_BYTES + words * WORD) as u64;
    let mut index = vec![];
    push_text(&mut index, identity);
    push(&mut index, weights.len());
    let mut starts = vec![];
    for weight in weights {
        push(&mut index, weight.numbers.len());
        index.extend(weight.numbers.iter().flat_map(|number| number.to_ne_bytes()));
        push(&mut index, weight.parts.len());
        for part in &weight.parts {
            let (start, bytes) = (end.next_multiple_of(LINE as u64), part.len() as u64);
            end = start + bytes;
            index.extend([start, bytes].iter().flat_map(|word| word.to_ne_bytes()));
            starts.push(start);
        }
    }
    let head = [u64::from_ne_bytes(MAGIC), ORDER, end, written, words as u64];
    let head = head.iter().flat_map(|word| word.to_ne_bytes());
    (head.chain(index).collect(), starts)
}

fn push(index: &mut Vec<u8>, number: usize) {
    index.extend((number as u64).to_ne_bytes());
}

fn push_text(index: &mut Vec<u8>, text: &str) {
    push(index, text.len());
    index.extend(text.as_bytes());
    index.resize(index.len().next_multiple_of(WORD), 0);
}

/// What is left of some words.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.next()?).ok()
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let bytes = self.size()?;
        let text = self.0.get(..bytes)?;
        self.0 = self.0.get(bytes.checked_next_multiple_of(WORD)?..)?;
        Some(text)
    }

    fn weights(&mut self) -> Option<Vec<WeightImage<Range<usize>>>> {
        self.list(|words| {
            let numbers = words.list(Words::next)?;
            let parts = words.list(|words| {
                let (start, bytes) = (words.size()?, words.size()?);
                Some(start..start.checked_add(bytes)?)
            })?;
            Some(WeightImage { numbers, parts })
        })
    }

    /// As many as the next word says. Nothing is allocated for what is not there.
    fn list<T>(&mut self, mut next: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.size()?;
        (0..count).map(|_| next(self)).collect()
    }
}

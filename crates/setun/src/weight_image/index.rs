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

use setun_ops::{
    aligned::SharedBytes,
    image::{MappedWeight, WeightBytes, WeightImage},
};

/// First bytes of an image. A change of what images hold changes the last of them.
const MAGIC: [u8; WORD] = *b"setunwi1";

const ORDER: u64 = 1;

const WORD: usize = size_of::<u64>();

const HEAD_BYTES: usize = 5 * WORD;

/// Where parts begin: at multiples of a cache line.
pub(super) const LINE: usize = 64;

/// Where a part lies in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// The head of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Of the whole file.
    pub(super) bytes: u64,
    /// When it was written. A file that anybody has written to since has another time.
    pub(super) written: u64,
    words: u64,
}

impl Head {
    /// The head of a file; none where it is no image that was written on such a machine.
    pub(super) fn read(file: &[u8]) -> Option<Self> {
        let mut words = Words(file);
        let magic = words.next()?;
        let order = words.next()?;
        let (bytes, written, index) = (words.next()?, words.next()?, words.next()?);
        let is_image = magic.to_ne_bytes() == MAGIC && order == ORDER;
        is_image.then_some(Self { bytes, written, words: index })
    }

    /// The weights, if the identity is the one that is expected.
    pub(super) fn weights(self, file: &SharedBytes, identity: &str) -> Option<Vec<MappedWeight>> {
        let bytes = usize::try_from(self.words).ok()?.checked_mul(WORD)?;
        let mut words = Words(file.get(HEAD_BYTES..)?.get(..bytes)?);
        if words.text()? != identity.as_bytes() {
            return None;
        }
        let count = words.next()?;
        let weights = (0..count).map(|_| {
            let numbers = words.list(Words::next)?;
            let parts = words.list(|words| {
                let (start, bytes) = (words.size()?, words.size()?);
                file.slice(start..start.checked_add(bytes)?)
            })?;
            Some(WeightImage { numbers, parts })
        });
        weights.collect()
    }
}

/// Head and index of an image, and the places of all parts.
pub(super) fn write(
    identity: &str,
    weights: &[WeightBytes<'_>],
    written: u64,
) -> (Vec<u8>, Vec<Place>) {
    let numbers: usize = weights.iter().map(|weight| weight.numbers.len()).sum();
    let parts: usize = weights.iter().map(|weight| weight.parts.len()).sum();
    let words = 2 + identity.len().div_ceil(WORD) + numbers + 2 * weights.len() + 2 * parts;
    let mut end = (HEAD_BYTES + words * WORD) as u64;
    let mut index = vec![];
    push_text(&mut index, identity);
    push(&mut index, weights.len());
    let mut places = vec![];
    for weight in weights {
        push(&mut index, weight.numbers.len());
        index.extend(weight.numbers.iter().flat_map(|number| number.to_ne_bytes()));
        push(&mut index, weight.parts.len());
        for part in &weight.parts {
            let place =
                Place { start: end.next_multiple_of(LINE as u64), bytes: part.len() as u64 };
            end = place.start + place.bytes;
            index.extend([place.start, place.bytes].iter().flat_map(|word| word.to_ne_bytes()));
            places.push(place);
        }
    }
    let head = [u64::from_ne_bytes(MAGIC), ORDER, end, written, words as u64];
    let head = head.iter().flat_map(|word| word.to_ne_bytes());
    (head.chain(index).collect(), places)
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

    /// As many as the next word says. Nothing is allocated for what is not there.
    fn list<T>(&mut self, mut next: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.size()?;
        (0..count).map(|_| next(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const IDENTITY: &str = "a model";

    fn image(weights: &[(Vec<u64>, Vec<Vec<u8>>)]) -> Vec<u8> {
        let weight = |(numbers, parts): &(Vec<u64>, Vec<Vec<u8>>)| WeightBytes {
            numbers: numbers.clone(),
            parts: parts.iter().map(|part| part.clone().into()).collect(),
        };
        let weights: Vec<_> = weights.iter().map(weight).collect();
        let (mut file, places) = write(IDENTITY, &weights, 5);
        for (part, place) in weights.iter().flat_map(|weight| &weight.parts).zip(places) {
            file.resize(usize::try_from(place.start).unwrap(), 0);
            file.extend_from_slice(part);
        }
        file
    }

    fn weights(file: &[u8]) -> Option<Vec<MappedWeight>> {
        Head::read(file)?.weights(&SharedBytes::new(file.to_vec()), IDENTITY)
    }

    proptest! {
        #[test]
        fn what_was_written_is_found(
            written in vec((vec(any::<u64>(), 0..4), vec(vec(any::<u8>(), 0..200), 0..4)), 0..5),
            bad in (any::<usize>(), any::<u8>()),
        ) {
            let file = image(&written);
            let head = Head::read(&file).unwrap();
            prop_assert_eq!((head.bytes, head.written), (file.len() as u64, 5));
            let found = weights(&file).unwrap();
            prop_assert_eq!(found.len(), written.len());
            for (found, (numbers, parts)) in found.iter().zip(&written) {
                prop_assert_eq!(&found.numbers, numbers);
                prop_assert!(found.parts.iter().map(|part| &**part).eq(parts.iter().map(|part| &**part)));
            }
            prop_assert!(head.weights(&SharedBytes::new(file.clone()), "another").is_none());
            // Damaged ones are refused or hold other values, and are never read beyond their end.
            let mut damaged = file.clone();
            damaged[bad.0 % file.len()] = bad.1;
            drop(weights(&damaged));
            drop(weights(&file[..bad.0 % file.len()]));
        }

        #[test]
        fn other_bytes_are_no_image(bytes in vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(Head::read(&bytes), None);
        }
    }
}

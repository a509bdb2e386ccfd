//! How fast this machine's threads read memory: the bound on decoding.

use std::{hint::black_box, thread, time::Instant};

/// Words of the buffer: far more than any cache, and at least 10⁹ bytes.
const WORDS: usize = 1 << 27;

/// Words that threads take in turn where they share the buffer: 2 MiB.
const SHARED_RUN: usize = 1 << 18;

/// Words of a page, which a stream reads before the next stream's turn.
const STRIDE: usize = 512;

/// Streams that a thread reads side by side.
const STREAMS: usize = 4;

/// Each pattern is timed so often; the best counts.
const PASSES: usize = 3;

/// Ways to share the buffer among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// Each thread reads one part, from its start to its end.
    Parts,
    /// Threads take runs of 2 MiB in turn.
    Runs,
    /// Each thread reads one part, in four places at once.
    Streams,
}

/// Reads over 10⁹ bytes by several threads in three patterns; the best speed, in 10⁹ bytes a
/// second. None where the memory for it cannot be had.
pub(super) fn measure(threads: usize) -> Option<f64> {
    let mut buffer: Vec<u64> = vec![];
    buffer.try_reserve_exact(WORDS).ok()?;
    buffer.extend(0..WORDS as u64); // touches every page
    let bytes = size_of_val(buffer.as_slice());
    let mut best = f64::INFINITY;
    for pattern in [Pattern::Parts, Pattern::Runs, Pattern::Streams] {
        for _ in 0..PASSES {
            let begun = Instant::now();
            black_box(read(&buffer, threads, pattern));
            best = best.min(begun.elapsed().as_secs_f64());
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a power of two")]
    Some(bytes as f64 / best / 1e9)
}

/// The sum of all words.
fn read(buffer: &[u64], threads: usize, pattern: Pattern) -> u64 {
    let part = buffer.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let work = |thread: usize| match pattern {
            Pattern::Parts => buffer.chunks(part).nth(thread).map_or(0, sum),
            Pattern::Runs => {
                let runs = buffer.chunks(SHARED_RUN).skip(thread).step_by(threads);
                runs.map(sum).fold(0, u64::wrapping_add)
            }
            Pattern::Streams => buffer.chunks(part).nth(thread).map_or(0, sum_of_streams),
        };
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let own = work(0);
        others.into_iter().map(|other| other.join().unwrap_or(0)).fold(own, u64::wrapping_add)
    })
}

/// Sixteen sums side by side, so that memory and not the adding is the limit.
fn sum(words: &[u64]) -> u64 {
    let (chunks, rest) = words.as_chunks::<16>();
    let mut sums = [0_u64; 16];
    for chunk in chunks {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().chain(rest).fold(0, |sum, word| sum.wrapping_add(*word))
}

fn sum_of_streams(words: &[u64]) -> u64 {
    let quarter = words.len() / STREAMS;
    let (a, rest) = words.split_at(quarter);
    let (b, rest) = rest.split_at(quarter);
    let (c, d) = rest.split_at(quarter);
    let strides = quarter.div_ceil(STRIDE);
    let stream = |words: &[u64], stride: usize| {
        let start = (stride * STRIDE).min(words.len());
        let end = if stride + 1 == strides { words.len() } else { start + STRIDE };
        sum(&words[start..end.min(words.len())])
    };
    let all = (0..strides).map(|stride| {
        let pairs = stream(a, stride).wrapping_add(stream(b, stride));
        pairs.wrapping_add(stream(c, stride)).wrapping_add(stream(d, stride))
    });
    all.fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_reads_every_word_once() {
        for words in [0, 1, 100, 5000, SHARED_RUN * 3 + 77] {
            let buffer: Vec<u64> = (0..words as u64).map(|word| word * word).collect();
            let expected = buffer.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
            for threads in [1, 2, 3] {
                for pattern in [Pattern::Parts, Pattern::Runs, Pattern::Streams] {
                    let found = read(&buffer, threads, pattern);
                    assert_eq!(found, expected, "{words} words, {threads} threads, {pattern:?}");
                }
            }
        }
    }
}

//! Read bandwidth of memory: the bound on decoding speed.

use std::{hint::black_box, thread, time::Instant};

use fearless_simd::{Level, dispatch, prelude::*, u32x16};
use setun::{DeviceKind, ops::aligned::Aligned};

use crate::error::CliError;

/// Words of the buffer: far more than any cache, and at least 10⁹ bytes.
const WORDS: usize = 1 << 28;

/// Words that threads take in turn where they share the buffer: 2 MiB.
const SHARED_RUN: usize = 1 << 19;

/// Words of a vector: 64 bytes, the cache line of most processors. Where vectors are that long a
/// line takes one load; with shorter ones a core reads less.
const LANES: usize = 16;

/// Vectors that are added side by side, so that memory and not the adding is the limit; the
/// streams that a thread reads at once.
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
    /// Each thread reads one part, in four places at once, a line in each.
    Streams,
}

/// What bounds a device: the bandwidth of its memory in 10⁹ bytes a second, and of a GPU its peak of
/// integer products in 10¹² operations a second.
#[cfg_attr(
    not(feature = "gpu"),
    expect(clippy::unnecessary_wraps, reason = "a GPU may refuse the measurement")
)]
pub(super) fn of_device(
    device: DeviceKind,
    threads: usize,
) -> Result<(Option<f64>, Option<f64>), CliError> {
    match device {
        #[cfg(feature = "gpu")]
        DeviceKind::Gpu(api) => {
            let limits = setun::gpu_limits(api)?;
            Ok((Some(limits.copy_gb_per_second), Some(limits.tera_operations_per_second)))
        }
        _ => Ok((measure(threads), None)),
    }
}

/// Reads over 10⁹ bytes by several threads in three patterns; the best speed, in 10⁹ bytes a
/// second. None where the memory for it cannot be had.
fn measure(threads: usize) -> Option<f64> {
    let buffer = Aligned::filled(1_u32, WORDS).ok()?; // touches every page
    let bytes = size_of_val(&*buffer);
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
fn read(buffer: &[u32], threads: usize, pattern: Pattern) -> u32 {
    let part = buffer.len().div_ceil(threads).next_multiple_of(LANES).max(LANES);
    let level = Level::new();
    thread::scope(|scope| {
        let work = |thread: usize| match pattern {
            Pattern::Parts => buffer.chunks(part).nth(thread).map_or(0, |words| sum(level, words)),
            Pattern::Runs => {
                let runs = buffer.chunks(SHARED_RUN).skip(thread).step_by(threads);
                runs.map(|words| sum(level, words)).fold(0, u32::wrapping_add)
            }
            Pattern::Streams => {
                buffer.chunks(part).nth(thread).map_or(0, |words| sum_of_streams(level, words))
            }
        };
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let own = work(0);
        others.into_iter().map(|other| other.join().unwrap_or(0)).fold(own, u32::wrapping_add)
    })
}

fn sum(level: Level, words: &[u32]) -> u32 {
    let (steps, rest) = words.as_chunks::<{ STREAMS * LANES }>();
    let lines = steps.iter().map(|step| {
        let (lines, _) = step.as_chunks();
        [&lines[0], &lines[1], &lines[2], &lines[3]]
    });
    dispatch!(level, simd => sum_lines(simd, lines)).wrapping_add(sum_few(rest))
}

fn sum_of_streams(level: Level, words: &[u32]) -> u32 {
    let stream = words.len() / STREAMS / LANES;
    let (lines, rest) = words.as_chunks();
    let (streams, others) = lines.split_at(stream * STREAMS);
    let lines = (0..stream).map(|line| {
        [
            &streams[line],
            &streams[stream + line],
            &streams[2 * stream + line],
            &streams[3 * stream + line],
        ]
    });
    let all = dispatch!(level, simd => sum_lines(simd, lines));
    all.wrapping_add(sum_few(others.as_flattened())).wrapping_add(sum_few(rest))
}

/// The sum of all words of lines, which come four at a time.
#[expect(clippy::inline_always, reason = "it takes the instructions of what it is inlined into")]
#[inline(always)]
fn sum_lines<'a, S: Simd>(
    simd: S,
    steps: impl Iterator<Item = [&'a [u32; LANES]; STREAMS]>,
) -> u32 {
    let mut sums = [u32x16::splat(simd, 0); STREAMS];
    for lines in steps {
        for (sum, line) in sums.iter_mut().zip(lines) {
            *sum += u32x16::simd_from(simd, *line);
        }
    }
    sum_few(sums.map(<[u32; LANES]>::from).as_flattened())
}

fn sum_few(words: &[u32]) -> u32 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_reads_every_word_once() {
        for words in [0, 1, 100, 5000, SHARED_RUN * 3 + 77] {
            let squares = (0..u32::MAX).map(|word| word.wrapping_mul(word));
            let buffer: Vec<u32> = squares.take(words).collect();
            let expected = sum_few(&buffer);
            for threads in [1, 2, 3] {
                for pattern in [Pattern::Parts, Pattern::Runs, Pattern::Streams] {
                    let found = read(&buffer, threads, pattern);
                    assert_eq!(found, expected, "{words} words, {threads} threads, {pattern:?}");
                }
            }
        }
    }
}

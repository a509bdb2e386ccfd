//! The approximate prefix index: which chunks of prompts were sent to which replica.

use std::collections::VecDeque;

use super::Load;
use crate::{hash::HashKeyed, random::Random, trace::Prepared};

/// Most chunks of a prompt that are looked for.
const MAX_CHUNKS: usize = 256;

/// Weights of the scores: the default configuration of the Gateway API Inference Extension.
const PREFIX_WEIGHT: f64 = 3.0;
const QUEUE_WEIGHT: f64 = 2.0;
const CACHE_WEIGHT: f64 = 2.0;

/// Chunks of prompts by replica. A chunk has the tokens of a block and is known by the hash of all
/// tokens up to its end.
#[derive(Clone, Debug)]
pub(super) struct PrefixIndex {
    chunks: HashKeyed<Vec<u32>>, // replicas that a chunk was sent to
    recent: Vec<Recent>,         // by replica
    capacity: usize,             // chunks of a replica
}

/// The chunks that were sent to a replica, with the latest time of each.
#[derive(Clone, Debug, Default)]
struct Recent {
    times: HashKeyed<u64>,
    order: VecDeque<(u64, u64)>, // time and chunk; all but the latest of a chunk are void
    clock: u64,
}

impl PrefixIndex {
    pub(super) fn new(replicas: u32, capacity: u32) -> Self {
        let recent = (0..replicas).map(|_| Recent::default()).collect();
        Self { chunks: HashKeyed::default(), recent, capacity: capacity as usize }
    }

    /// The replica with the highest score, at random among equals. The prompt is then known there.
    pub(super) fn choose(
        &mut self,
        request: &Prepared,
        loads: &[Load],
        random: &mut Random,
    ) -> usize {
        let chunks = request.whole(request.prompt);
        let chunks = &chunks[..chunks.len().min(MAX_CHUNKS)];
        let scores = self.scores(chunks, loads);
        let there = || (0..loads.len()).filter(|&replica| !loads[replica].lost);
        let best = there().map(|replica| scores[replica]).fold(f64::MIN, f64::max);
        let equal: Vec<_> = there().filter(|&replica| scores[replica] >= best).collect();
        let place = usize::try_from(random.below(equal.len() as u64)).unwrap_or_default();
        self.add(chunks, equal[place]);
        equal[place]
    }

    fn scores(&self, chunks: &[u64], loads: &[Load]) -> Vec<f64> {
        let matched = self.matched(chunks, loads.len());
        let waiting = || loads.iter().filter(|load| !load.lost).map(|load| f64::from(load.waiting));
        let (least, most) = (waiting().fold(f64::MAX, f64::min), waiting().fold(0.0, f64::max));
        let all = u32::try_from(chunks.len()).unwrap_or(u32::MAX).max(1);
        let score = |(load, matched): (&Load, u32)| {
            let prefix = f64::from(matched) / f64::from(all);
            let shorter = most - f64::from(load.waiting);
            let queue = if most > least { shorter / (most - least) } else { 1.0 };
            PREFIX_WEIGHT * prefix + QUEUE_WEIGHT * queue + CACHE_WEIGHT * (1.0 - load.used)
        };
        loads.iter().zip(matched).map(score).collect()
    }

    /// How many chunks from the first on each replica has.
    fn matched(&self, chunks: &[u64], replicas: usize) -> Vec<u32> {
        let mut matched = vec![0; replicas];
        for (before, chunk) in (0..).zip(chunks) {
            let Some(having) = self.chunks.get(chunk) else { break };
            let mut any = false;
            for &replica in having {
                let count = &mut matched[replica as usize];
                if *count == before {
                    *count += 1;
                    any = true;
                }
            }
            if !any {
                break;
            }
        }
        matched
    }

    fn add(&mut self, chunks: &[u64], replica: usize) {
        let recent = &mut self.recent[replica];
        for &chunk in chunks {
            recent.clock += 1;
            recent.order.push_back((recent.clock, chunk));
            if recent.times.insert(chunk, recent.clock).is_none() {
                let number = u32::try_from(replica).unwrap_or(u32::MAX);
                self.chunks.entry(chunk).or_default().push(number);
            }
        }
        while recent.times.len() > self.capacity {
            let Some((time, chunk)) = recent.order.pop_front() else { return };
            if recent.times.get(&chunk) == Some(&time) {
                recent.times.remove(&chunk);
                remove(&mut self.chunks, chunk, replica);
            }
        }
    }

    /// A replica has nothing any longer.
    pub(super) fn forget(&mut self, replica: usize) {
        let recent = std::mem::take(&mut self.recent[replica]);
        for (time, chunk) in recent.order {
            if recent.times.get(&chunk) == Some(&time) {
                remove(&mut self.chunks, chunk, replica);
            }
        }
    }
}

/// A replica has a chunk no longer.
fn remove(chunks: &mut HashKeyed<Vec<u32>>, chunk: u64, replica: usize) {
    if let Some(having) = chunks.get_mut(&chunk) {
        having.retain(|&other| other as usize != replica);
        if having.is_empty() {
            chunks.remove(&chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(blocks: &[u64]) -> Prepared {
        let prompt = 32 * u32::try_from(blocks.len()).expect("few");
        let blocks = blocks.to_vec();
        Prepared { at: 0, key: 0, key_hash: 0, prompt, output: 1, blocks, follows: None }
    }

    #[test]
    fn a_prompt_goes_where_its_beginning_went() {
        let (mut index, mut random) = (PrefixIndex::new(8, 100), Random::new(0));
        let idle = [Load::default(); 8];
        let mut choose =
            |blocks: &[u64], loads: &[Load]| index.choose(&request(blocks), loads, &mut random);
        let first = choose(&[1, 2, 3], &idle);
        assert_eq!(choose(&[1, 2, 4], &idle), first);
        // A full cache counts 2 and a prefix 3.
        let mut loads = idle;
        loads[first].used = 1.0;
        assert_eq!(choose(&[1, 2, 3], &loads), first);
        // With a queue it is 4 against 3.
        loads[first].waiting = 1;
        assert_ne!(choose(&[1, 2, 3], &loads), first);
    }

    #[test]
    fn old_chunks_and_lost_replicas_are_forgotten() {
        let mut index = PrefixIndex::new(2, 2);
        index.add(&[1, 2], 0);
        index.add(&[1], 0);
        index.add(&[3], 0);
        assert_eq!(index.matched(&[1, 2], 2), [1, 0], "2 was the oldest");
        index.add(&[1, 2], 1);
        assert_eq!(index.matched(&[1, 2], 2), [1, 2]);
        index.forget(1);
        assert_eq!(index.matched(&[1, 2], 2), [1, 0]);
        assert_eq!(index.chunks.len(), 2);
    }
}

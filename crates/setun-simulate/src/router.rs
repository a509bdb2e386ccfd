//! Policies of a load balancer: which replica a request goes to.

mod index;
mod ring;

use std::{fmt, str::FromStr};

use crate::{error::SimulateError, random::Random, trace::Prepared};
use index::PrefixIndex;
use ring::Ring;

/// A policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Each replica in turn.
    RoundRobin,
    /// The replica with the fewest open requests, of several the next in turn.
    LeastLoad,
    /// Consistent hashing of the request's key.
    Hash,
    /// The same, past replicas with more than their share of the open requests: `hash-balance-factor`
    /// of `HAProxy`, after Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads".
    BoundedHash,
    /// The highest score of a prefix that was sent there before, a short queue and a free cache: the
    /// approximate prefix index of the Gateway API Inference Extension.
    Index,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 5] =
        [Self::RoundRobin, Self::LeastLoad, Self::Hash, Self::BoundedHash, Self::Index];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::LeastLoad => "least-load",
            Self::Hash => "hash",
            Self::BoundedHash => "bounded-hash",
            Self::Index => "index",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = SimulateError;

    fn from_str(text: &str) -> Result<Self, SimulateError> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| SimulateError::Option {
            option: "policy",
            found: format!("`{text}`"),
            expected: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// What a load balancer knows of a replica.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    pub(crate) lost: bool,
    pub(crate) open: u32,    // requests that wait or run
    pub(crate) waiting: u32, // of these
    pub(crate) used: f64,    // share of its cache that running requests hold
}

/// A load balancer.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    policy: Policy,
    turn: usize,
    ring: Ring,
    index: PrefixIndex,
    random: Random,
}

impl Router {
    /// For this number of replicas, whose caches have this number of blocks. `factor` is in percent.
    pub(crate) fn new(policy: Policy, replicas: u32, blocks: u32, factor: u32, seed: u64) -> Self {
        let ring = match policy {
            Policy::Hash => Ring::new(replicas, None, seed),
            Policy::BoundedHash => Ring::new(replicas, Some(factor), seed),
            _ => Ring::new(0, None, seed),
        };
        let index = PrefixIndex::new(replicas, blocks);
        Self { policy, turn: 0, ring, index, random: Random::new(!seed) }
    }

    /// The replica for a request; one at least is not lost.
    pub(crate) fn choose(&mut self, request: &Prepared, loads: &[Load]) -> usize {
        match self.policy {
            Policy::RoundRobin => self.in_turn(loads, |_| 0),
            Policy::LeastLoad => self.in_turn(loads, |load| load.open),
            Policy::Hash | Policy::BoundedHash => self.ring.choose(request.key_hash, loads),
            Policy::Index => self.index.choose(request, loads, &mut self.random),
        }
    }

    /// A replica is lost.
    pub(crate) fn lose(&mut self, replica: usize) {
        self.index.forget(replica);
    }

    /// Of the replicas that have the least of something, the next in turn.
    fn in_turn(&mut self, loads: &[Load], of: impl Fn(&Load) -> u32) -> usize {
        let count = loads.len();
        let turns = (0..count).map(|step| (self.turn + step) % count);
        let chosen = turns.filter(|&replica| !loads[replica].lost);
        let chosen = chosen.min_by_key(|&replica| of(&loads[replica])).unwrap_or_default();
        self.turn = (chosen + 1) % count;
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(open: &[u32]) -> Vec<Load> {
        open.iter().map(|&open| Load { open, ..Load::default() }).collect()
    }

    fn request() -> Prepared {
        let (at, key, key_hash, prompt, output) = (0, 0, 0, 1, 1);
        Prepared { at, key, key_hash, prompt, output, blocks: vec![], follows: None }
    }

    #[test]
    fn round_robin_passes_lost_replicas() {
        let mut router = Router::new(Policy::RoundRobin, 3, 8, 150, 0);
        let mut loads = loads(&[9, 0, 0]);
        let mut choose = |loads: &[Load]| router.choose(&request(), loads);
        assert_eq!([choose(&loads), choose(&loads)], [0, 1]);
        loads[2].lost = true;
        assert_eq!([choose(&loads), choose(&loads), choose(&loads)], [0, 1, 0]);
    }

    #[test]
    fn least_load_takes_turns_among_equals() {
        let mut router = Router::new(Policy::LeastLoad, 4, 8, 150, 0);
        let mut choose = |open: &[u32]| router.choose(&request(), &loads(open));
        assert_eq!(choose(&[2, 1, 1, 3]), 1);
        assert_eq!(choose(&[2, 1, 1, 3]), 2);
        assert_eq!(choose(&[2, 1, 1, 3]), 1);
        assert_eq!(choose(&[0, 1, 1, 3]), 0);
    }

    #[test]
    fn names_are_read_again() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        let error = "random".parse::<Policy>().expect_err("no policy");
        let expected = "policy: found `random`, expected round-robin, least-load, hash, \
                        bounded-hash, index";
        assert_eq!(error.to_string(), expected);
    }
}

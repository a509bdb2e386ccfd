//! The seed of everything that a check draws, and the variables that tell it to tests.

use std::env;
use std::hash::{BuildHasher, RandomState};

use anyhow::{Context, Result};

use crate::shell::{output, program};

/// The seed, for tests of this repository and for proptest.
const SEED: &str = "SETUN_SEED";
const PROPTEST: &str = "PROPTEST_RNG_SEED";

/// Set where tests select everything.
const FULL: &str = "SETUN_FULL";

/// True in the process of a full check.
pub(super) fn is_full() -> bool {
    env::var_os(FULL).is_some()
}

/// A seed of 32 bits, which every language of the tests has exactly, and where it is from.
#[derive(Debug, PartialEq)]
pub(super) struct Seed {
    number: u32,
    origin: String,
}

impl Seed {
    /// The seed of `SETUN_SEED`, a new one for a full check, or else the commit's: the same commit is checked in
    /// the same way again.
    pub(super) fn choose(full: bool) -> Result<Self> {
        if let Ok(given) = env::var(SEED) {
            return Self::given(&given);
        }
        if full {
            let drawn = RandomState::new().hash_one(SEED);
            return Ok(Self { number: high_half(drawn), origin: "drawn anew".to_owned() });
        }
        let commit = output(program("git").args(["rev-parse", "HEAD"])).unwrap_or_default();
        Ok(Self::of_commit(commit.trim()))
    }

    fn given(text: &str) -> Result<Self> {
        let number = text.parse().with_context(|| {
            format!("{SEED} is {text:?}; expected a whole number below 4294967296")
        })?;
        Ok(Self { number, origin: format!("given by {SEED}") })
    }

    /// The first 32 bits of its hash; 0 outside of a repository.
    fn of_commit(hash: &str) -> Self {
        match hash.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(number) => Self { number, origin: format!("of commit {}", &hash[..8]) },
            None => Self { number: 0, origin: "without a commit".to_owned() },
        }
    }

    /// One line that says how to repeat the check.
    pub(super) fn line(&self) -> String {
        format!("seed {} ({}); repeat it with {SEED}={}", self.number, self.origin, self.number)
    }

    /// The variables of the processes of stages.
    pub(super) fn variables(&self, full: bool) -> Vec<(&'static str, String)> {
        let number = self.number.to_string();
        let mut variables = vec![(SEED, number.clone()), (PROPTEST, number)];
        variables.extend(full.then(|| (FULL, "1".to_owned())));
        variables
    }
}

fn high_half(number: u64) -> u32 {
    u32::try_from(number >> 32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_one_seed() {
        let seed = Seed::of_commit("85a8ad7b1c2d3e4f5061728394a5b6c7d8e9fa0b");
        assert_eq!(seed.number, 0x85a8_ad7b);
        assert_eq!(
            seed.line(),
            "seed 2242424187 (of commit 85a8ad7b); repeat it with SETUN_SEED=2242424187"
        );
        assert_eq!(Seed::of_commit("").number, 0);
        assert_eq!(Seed::of_commit("not a hash").number, 0);
    }

    #[test]
    fn a_given_seed_is_taken_or_refused() {
        assert_eq!(Seed::given("7").unwrap().number, 7);
        for wrong in ["", "-1", "4294967296", "x"] {
            let error = Seed::given(wrong).unwrap_err().to_string();
            assert!(error.contains("expected a whole number below 4294967296"), "{error}");
        }
    }

    #[test]
    fn tests_are_told_the_seed_and_the_selection() {
        let seed = Seed::given("7").unwrap();
        let plain = [("SETUN_SEED", "7".to_owned()), ("PROPTEST_RNG_SEED", "7".to_owned())];
        assert_eq!(seed.variables(false), plain);
        assert_eq!(seed.variables(true)[2], ("SETUN_FULL", "1".to_owned()));
    }
}

//! The seed of everything that a check draws, and the variables that tell it to tests.

use std::env;
use std::hash::{BuildHasher, RandomState};

use anyhow::{Context, Result};

use crate::shell::{output, program, say};

/// The seed, for tests of this repository and for proptest.
const SEED: &str = "SETUN_SEED";
const PROPTEST: &str = "PROPTEST_RNG_SEED";

/// Set where tests select everything.
const FULL: &str = "SETUN_FULL";

/// The seed of `SETUN_SEED`, a new one for a full check, or else the commit's: the same commit is checked in the same
/// way again. It has 32 bits, which every language of the tests has exactly. A line says how to repeat the check.
pub(super) fn choose(full: bool) -> Result<u32> {
    let (seed, origin) = if let Ok(text) = env::var(SEED) {
        (given(&text)?, format!("given by {SEED}"))
    } else if full {
        (u32::try_from(RandomState::new().hash_one(SEED) >> 32)?, "drawn anew".to_owned())
    } else {
        of_commit(&output(program("git").args(["rev-parse", "HEAD"])).unwrap_or_default())
    };
    say(&format!("seed {seed} ({origin}); repeat it with {SEED}={seed}"));
    Ok(seed)
}

/// The seed of all draws: that of the environment, or 0, so that a run by hand is the same twice.
pub(super) fn current() -> u32 {
    env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

fn given(text: &str) -> Result<u32> {
    let why = || format!("{SEED} is {text:?}; expected a whole number below 4294967296");
    text.parse().with_context(why)
}

/// The first 32 bits of a commit's hash; 0 outside of a repository.
fn of_commit(hash: &str) -> (u32, String) {
    match hash.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        Some(number) => (number, format!("of commit {}", &hash[..8])),
        None => (0, "without a commit".to_owned()),
    }
}

/// The variables of the processes of stages.
pub(super) fn variables(seed: u32, full: bool) -> Vec<(&'static str, String)> {
    let mut variables = vec![(SEED, seed.to_string()), (PROPTEST, seed.to_string())];
    variables.extend(full.then(|| (FULL, "1".to_owned())));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_one_seed() {
        let expected = (0x85a8_ad7b, "of commit 85a8ad7b".to_owned());
        assert_eq!(of_commit("85a8ad7b1c2d3e4f5061728394a5b6c7d8e9fa0b\n"), expected);
        assert_eq!(of_commit(""), (0, "without a commit".to_owned()));
        assert_eq!(of_commit("not a hash").0, 0);
    }

    #[test]
    fn a_given_seed_is_refused_or_told_to_tests() {
        let told = variables(given("7").unwrap(), true);
        let told: Vec<_> = told.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(told, ["SETUN_SEED=7", "PROPTEST_RNG_SEED=7", "SETUN_FULL=1"]);
        assert_eq!(variables(7, false).len(), 2);
        for wrong in ["", "-1", "4294967296", "x"] {
            let error = given(wrong).unwrap_err().to_string();
            assert!(error.contains("expected a whole number below 4294967296"), "{error}");
        }
    }
}

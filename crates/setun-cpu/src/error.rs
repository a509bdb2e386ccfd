//! Errors of making the backend. Steps report [`OpsError`](setun_ops::OpsError).

use crate::level::Level;

/// Why the CPU backend could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CpuError {
    /// The level requested does not exist on this processor or in this build.
    #[error(
        "CPU level {} is not available here; there is: {}",
        wanted.map_or("auto", Level::name),
        names(available)
    )]
    Level {
        /// What was requested; none for the best.
        wanted: Option<Level>,
        /// What there is, best first. The definitions (`scalar`) are always there besides.
        available: Vec<Level>,
    },

    /// Not a possible number of threads.
    #[error("{found} threads, expected 1 to {limit}")]
    Threads {
        /// The number requested.
        found: usize,
        /// The most that this build can use.
        limit: usize,
    },

    /// The system gave no thread.
    #[error("thread {member} of the team could not be started")]
    Spawn {
        /// Which one.
        member: usize,
        /// What the system said.
        source: std::io::Error,
    },

    /// A thread flushes subnormal numbers to zero or does not round to nearest, which changes
    /// results.
    #[error("thread {member} of the team flushes subnormal numbers or does not round to nearest")]
    FloatMode {
        /// Which one; 0 is the caller.
        member: usize,
    },
}

fn names(levels: &[Level]) -> String {
    let mut names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
    names.push("scalar");
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_level_says_what_there_is() {
        let error = CpuError::Level { wanted: Some(Level::Relaxed), available: vec![Level::Avx2] };
        let expected = "CPU level relaxed is not available here; there is: avx2, scalar";
        assert_eq!(error.to_string(), expected);
    }
}

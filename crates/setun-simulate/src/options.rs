//! Options of a simulation.

use crate::{
    costs::StepCosts,
    error::SimulateError,
    limits::{BLOCK_TOKENS, Limits, MAX_ROWS},
    router::Policy,
};

/// Most replicas.
pub const MAX_REPLICAS: u32 = 1000;

/// A replica that is lost at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostReplica {
    /// Its number, from 0 on.
    pub replica: u32,
    /// Milliseconds from the begin of the trace.
    pub at_ms: u64,
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Replicas.
    pub replicas: u32,
    /// How requests are sent to them.
    pub policy: Policy,
    /// Limits of each.
    pub limits: Limits,
    /// Times of its steps.
    pub costs: StepCosts,
    /// With [`Policy::BoundedHash`]: most open requests of a replica, in percent of the mean.
    pub factor: u32,
    /// Clients that send the requests in their order, each its next one after an answer, whatever
    /// their times are. Without them each request is sent at its time.
    pub open: Option<u32>,
    /// Whether the replies in later prompts are other tokens than those that were generated.
    pub other_replies: bool,
    /// A replica that is lost.
    pub lose: Option<LostReplica>,
    /// Seed of the choices that are left to chance.
    pub seed: u64,
}

impl Options {
    /// The defaults for a number of replicas and a policy.
    #[must_use]
    pub fn new(replicas: u32, policy: Policy) -> Self {
        let (limits, costs) = (Limits::default(), StepCosts::bitnet_2b4t());
        Self {
            replicas,
            policy,
            limits,
            costs,
            factor: 150,
            open: None,
            other_replies: false,
            lose: None,
            seed: 0,
        }
    }

    pub(crate) fn check(&self) -> Result<(), SimulateError> {
        let wrong = |option, found: u32, expected: String| {
            Err(SimulateError::Option { option, found: found.to_string(), expected })
        };
        if !(1..=MAX_REPLICAS).contains(&self.replicas) {
            return wrong("replicas", self.replicas, format!("1 to {MAX_REPLICAS}"));
        }
        if self.limits.cache < BLOCK_TOKENS {
            let expected = format!("at least {BLOCK_TOKENS}, a block");
            return wrong("cache", self.limits.cache, expected);
        }
        if !(1..=MAX_ROWS).contains(&self.limits.max_concurrent) {
            let expected = format!("1 to {MAX_ROWS}, the rows of a step");
            return wrong("max_concurrent", self.limits.max_concurrent, expected);
        }
        if self.factor <= 100 {
            return wrong("factor", self.factor, "a percentage above 100".to_owned());
        }
        if self.open == Some(0) {
            return wrong("open", 0, "at least 1".to_owned());
        }
        match self.lose {
            Some(_) if self.replicas == 1 => {
                wrong("lose", 0, "another replica beside it".to_owned())
            }
            Some(lost) if lost.replica >= self.replicas => {
                wrong("lose", lost.replica, format!("a replica from 0 to {}", self.replicas - 1))
            }
            _ => self.costs.check(),
        }
    }
}

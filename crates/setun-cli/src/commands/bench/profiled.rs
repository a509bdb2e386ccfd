//! A round whose operations are timed.

use setun::Engine;

use super::{candidates::Candidates, round};
use crate::{commands::profile::ProfileReport, error::CliError};

/// A round with every operation timed.
pub(super) struct Profiled {
    /// Generated tokens, sequence by sequence.
    pub(super) tokens: Vec<Vec<u32>>,
    /// None where the device does not time its operations.
    pub(super) report: Option<ProfileReport>,
    /// Of decoding. None where no head was screened.
    pub(super) candidates: Option<Candidates>,
}

/// Runs a round with every operation timed, after one to warm up. Apart from the rounds that
/// give the speeds, as timing takes time.
pub(super) fn measure(
    engine: &Engine,
    prompts: &[Vec<u32>],
    (warm_up, generate): (usize, usize),
) -> Result<Profiled, CliError> {
    pollster::block_on(engine.start_profile())?;
    round::run(engine, prompts, warm_up)?;
    pollster::block_on(engine.start_profile())?;
    let tokens = round::run(engine, prompts, generate)?.tokens;
    let profile = pollster::block_on(engine.end_profile())?;
    let candidates = profile.as_ref().and_then(|profile| Candidates::of(&profile.decode.steps));
    let report = profile.as_ref().map(ProfileReport::of);
    Ok(Profiled { tokens, report, candidates })
}

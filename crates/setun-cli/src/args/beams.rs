//! Options of beam search.

use clap::Args;
use setun::{BeamOptions, EarlyStopping};

use super::number;

/// Most beams that can be asked for.
const MAX_BEAMS: i64 = 1024;

/// Beam search.
#[derive(Args, Debug)]
#[command(next_help_heading = "Beam search")]
pub(crate) struct BeamArgs {
    /// Number of beams. They run in one batch, and nothing is sampled
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_BEAMS))]
    #[arg(conflicts_with = "samples")]
    pub(crate) num_beams: Option<u16>,

    /// Number of texts to print, best first; standard error has the number and score of each
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=MAX_BEAMS))]
    #[arg(requires = "num_beams", default_value_t = 1)]
    num_return_sequences: u16,

    /// Exponent of the length that divides a score: positive values favour longer texts
    #[arg(long, value_name = "X", value_parser = number(f32::MIN, f32::MAX))]
    #[arg(requires = "num_beams", default_value_t = 1.0, allow_negative_numbers = true)]
    length_penalty: f32,

    /// When to stop once there are N finished texts: at once (true), when a better one is unlikely
    /// (false), or when a better one is impossible (never)
    #[arg(long, value_name = "WHEN", value_parser = ["true", "false", "never"])]
    #[arg(requires = "num_beams", default_value = "false")]
    early_stopping: String,

    /// Number of beam groups for diverse beam search
    #[arg(long, value_name = "G", value_parser = clap::value_parser!(u16).range(1..=MAX_BEAMS))]
    #[arg(requires = "diversity_penalty", default_value_t = 1)]
    num_beam_groups: u16,

    /// Penalty on a token's log-probability for each beam of an earlier group that chose it
    #[arg(long, value_name = "X", value_parser = number(f32::MIN_POSITIVE, f32::MAX))]
    #[arg(requires = "num_beam_groups")]
    diversity_penalty: Option<f32>,
}

impl BeamArgs {
    /// How to search, if that was asked for.
    pub(crate) fn options(&self) -> Option<BeamOptions> {
        let early_stopping = match self.early_stopping.as_str() {
            "true" => EarlyStopping::Full,
            "never" => EarlyStopping::Never,
            _ => EarlyStopping::Unlikely,
        };
        Some(BeamOptions {
            beams: usize::from(self.num_beams?),
            length_penalty: f64::from(self.length_penalty),
            early_stopping,
            best: usize::from(self.num_return_sequences),
            groups: usize::from(self.num_beam_groups),
            diversity_penalty: self.diversity_penalty.unwrap_or(0.0),
        })
    }
}

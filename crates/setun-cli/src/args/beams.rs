//! How to search with beams.

use clap::Args;
use setun::{BeamOptions, EarlyStopping};

use super::number;

/// Most beams that can be asked for.
const MAX_BEAMS: i64 = 1024;

/// Beam search.
#[derive(Args, Debug)]
#[command(next_help_heading = "Beam search")]
pub(crate) struct BeamArgs {
    /// Search for the likeliest text with so many beams, which run in one batch; nothing is sampled
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_BEAMS))]
    #[arg(conflicts_with = "samples")]
    pub(crate) beams: Option<u16>,

    /// Print the K best texts, each headed on standard error by its number and its score
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=MAX_BEAMS))]
    #[arg(requires = "beams", default_value_t = 1)]
    best: u16,

    /// Divides scores by the length to this power: above 0 longer texts gain, below 0 shorter ones
    #[arg(long, value_name = "X", value_parser = number(f32::MIN, f32::MAX))]
    #[arg(requires = "beams", default_value_t = 1.0, allow_negative_numbers = true)]
    length_penalty: f32,

    /// When a search ends that has N texts: at once (true), where no better one is likely (false),
    /// or where none is possible (never)
    #[arg(long, value_name = "WHEN", value_parser = ["true", "false", "never"])]
    #[arg(requires = "beams", default_value = "false")]
    early_stopping: String,

    /// Groups of beams, which find different texts
    #[arg(long, value_name = "G", value_parser = clap::value_parser!(u16).range(1..=MAX_BEAMS))]
    #[arg(requires = "diversity_penalty", default_value_t = 1)]
    beam_groups: u16,

    /// Taken from the logarithm of a token's probability for each beam of an earlier group that
    /// has taken it
    #[arg(long, value_name = "X", value_parser = number(f32::MIN_POSITIVE, f32::MAX))]
    #[arg(requires = "beam_groups")]
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
            beams: usize::from(self.beams?),
            length_penalty: f64::from(self.length_penalty),
            early_stopping,
            best: usize::from(self.best),
            groups: usize::from(self.beam_groups),
            diversity_penalty: self.diversity_penalty.unwrap_or(0.0),
        })
    }
}

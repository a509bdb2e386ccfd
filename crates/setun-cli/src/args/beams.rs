//! Options of beam search.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use setun::BeamOptions;

use super::options::{argument, given, not_in_beams, refused};

/// The option that requests a search.
const NUM_BEAMS: &str = "num_beams";

/// Further arguments of `setun run` that a search does not take.
const OTHERS: [&str; 10] = [
    "n",
    "draft",
    "context_overflow",
    "json_schema",
    "json_object",
    "regex",
    "grammar",
    "choice",
    "words",
    "expressions",
];

/// Beam search, if it was requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeamArgs(pub(crate) Option<BeamOptions>);

impl Args for BeamArgs {
    fn augment_args(command: Command) -> Command {
        BeamOptions::SPECS.iter().fold(command, |command, spec| {
            let argument = argument(spec);
            command.arg(match spec.name {
                NUM_BEAMS => argument.conflicts_with_all(OTHERS).conflicts_with_all(not_in_beams()),
                "num_beam_groups" => argument.requires_all([NUM_BEAMS, "diversity_penalty"]),
                _ => argument.requires(NUM_BEAMS),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for BeamArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = Self(None);
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for spec in BeamOptions::SPECS {
            if let Some(value) = given(spec, matches) {
                self.0
                    .get_or_insert_default()
                    .set(spec.name, &value)
                    .map_err(|error| refused(&error))?;
            }
        }
        Ok(())
    }
}

//! `setun devices`: what is here.

use crate::{
    error::CliError,
    output::{Output, table},
};

/// List the devices and levels that are here, the best first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print a JSON array instead
    #[arg(long)]
    json: bool,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let devices = setun::devices();
    let mut output = Output::new();
    if args.json {
        return output.json(&devices);
    }
    let mut rows = vec![["device", "level", ""].map(str::to_owned).to_vec()];
    rows.extend(devices.iter().map(|info| {
        let chosen = if info.chosen { "chosen by auto" } else { "" };
        [info.device, &info.level, chosen].map(str::to_owned).to_vec()
    }));
    output.line(&table(&rows))
}

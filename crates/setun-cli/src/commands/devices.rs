//! `setun devices`: available devices and instruction sets.

use setun::{DeviceOptions, DeviceReport, Verdict, checkpoint::Options};

use crate::{
    args::FileArgs,
    error::CliError,
    output::{Output, table},
    source::ModelFiles,
};

/// List available devices and CPU instruction sets, best first
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Test and time them for a model, and explain the choice
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    #[command(flatten)]
    file: FileArgs,

    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    if args.model.is_none() && Options::from(args.file) != Options::default() {
        return Err(CliError::Usage("--i2s-interleave needs --model".to_owned()));
    }
    let mut output = Output::new();
    if let Some(model) = &args.model {
        let reader = ModelFiles::find(Some(model), args.file.into())?.open()?;
        let report = pollster::block_on(reader.probe(DeviceOptions::default()))?;
        return if args.json {
            output.json(&report.devices)
        } else {
            output.line(&table(&verdicts(&report)))
        };
    }
    let devices = setun::devices();
    if args.json {
        return output.json(&devices);
    }
    let mut rows = vec![["device", "level", ""].map(str::to_owned).to_vec()];
    rows.extend(devices.iter().map(|info| {
        let chosen = if info.chosen { "chosen by auto" } else { info.note };
        [info.device.name(), &info.level, chosen].map(str::to_owned).to_vec()
    }));
    output.line(&table(&rows))
}

fn verdicts(report: &DeviceReport) -> Vec<Vec<String>> {
    let mut rows = vec![["device", "level", "µs a layer", ""].map(str::to_owned).to_vec()];
    rows.extend(report.devices.iter().map(|found| {
        let time = found.layer_microseconds.map_or(String::new(), |time| format!("{time:.0}"));
        let verdict = match found.verdict {
            Verdict::Chosen => format!("chosen: {}", found.reason),
            Verdict::Failed => format!("failed: {}", found.reason),
            _ => found.reason.clone(),
        };
        vec![found.device.to_string(), found.level.clone(), time, verdict]
    }));
    rows
}

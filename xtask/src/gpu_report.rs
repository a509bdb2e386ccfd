//! A machine's GPUs in one command: self-tests, tests, limits, speed, memory.
//!
//! Each measurement is a process of its own with its own time, so that one that hangs or crashes
//! costs its line alone. They come by worth, and what found no time is listed. The machine needs
//! nothing but the programs: `--build-only` leaves them in a folder, which `--programs` takes.

mod child;
mod machine;
mod markdown;
mod programs;
mod speed;
mod suites;
mod webgpu;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};

use crate::shell::{say, target};
use child::Runner;
use machine::Api;
use programs::Programs;

/// Options of `cargo xtask gpu-report`.
#[derive(Args)]
pub(crate) struct Options {
    /// Build the programs into target/gpu-report/programs, and measure nothing.
    #[arg(long, conflicts_with_all = ["programs", "quick", "to"])]
    build_only: bool,
    /// Run the programs of this folder, which another machine has built.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// The folder of report.json and report.md. Default: target/gpu-report.
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// Minutes for all of it, without what is built.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=240))]
    minutes: u64,
    /// The smallest shape and few tokens, as for a software adapter.
    #[arg(long)]
    quick: bool,
}

/// `cargo xtask gpu-report`.
pub(crate) fn run_command(options: &Options) -> Result<()> {
    let programs = match &options.programs {
        Some(folder) => Programs::in_folder(folder)?,
        None => Programs::build()?,
    };
    if options.build_only {
        println!("{}", programs.folder.display());
        return Ok(());
    }
    let folder = options.to.clone().unwrap_or_else(|| target().join("gpu-report"));
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let folder = folder.canonicalize()?;
    let mut runner = Runner::new(&folder.join("logs"), options.minutes)?;
    let report = measure(options, &programs, &mut runner);
    let path = folder.join("report.json");
    fs::write(&path, serde_json::to_string_pretty(&report)? + "\n")?;
    println!("{}", path.display());
    let path = folder.join("report.md");
    fs::write(&path, markdown::of(&report))?;
    println!("{}", path.display());
    Ok(())
}

/// All parts, those first that say most.
fn measure(options: &Options, programs: &Programs, runner: &mut Runner) -> Value {
    let devices = machine::devices(programs, runner);
    let apis = Api::of(&devices, options.quick);
    let memory_before = machine::used_memory();
    let machine = machine::about(&devices);
    let self_test = machine::self_test(programs, runner);
    let limits: serde_json::Map<String, Value> =
        apis.iter().map(|api| (api.name.clone(), speed::limits(api, programs, runner))).collect();
    let (mut tests, mut speeds) = (vec![], vec![]);
    let is_cuda = |api: &&Api| api.name == "cuda";
    if apis.iter().any(|api| is_cuda(&api)) {
        tests.extend(suites::run(&["setun-gpu-cuda", "setun-tests-cuda"], true, programs, runner));
    }
    let mut of_api = |api: &Api, runner: &mut Runner| {
        let shapes = speed::shapes(api).iter();
        speeds.extend(shapes.map(|shape| speed::measure(api, shape, programs, runner)));
    };
    // CUDA promises the CPU's tokens, so both come before what may take the rest of the time.
    apis.iter().filter(is_cuda).for_each(|api| of_api(api, runner));
    let cpu = speed::by_cpu(&apis, programs, runner);
    apis.iter().filter(|api| !is_cuda(api)).for_each(|api| of_api(api, runner));
    if apis.iter().any(|api| is_cuda(&api)) {
        tests.extend(suites::run(&["setun-tests-cuda_lost"], true, programs, runner));
    }
    if apis.iter().any(|api| !is_cuda(&api)) {
        let suites = ["setun-gpu-gpu_parity", "setun-tests-gpu", "setun-tests-gpu_engine"];
        tests.extend(suites::run(&suites, false, programs, runner));
    }
    let memory_after = machine::used_memory();
    let webgpu = webgpu::measure(options.programs.is_some(), runner);
    json!({
        "minutes": options.minutes,
        "seconds": runner.seconds(),
        "machine": machine,
        "missing": machine::missing(&apis),
        "self_test": self_test,
        "limits": limits,
        "tests": tests,
        "speed": speeds,
        "cpu": cpu,
        "webgpu": webgpu,
        "memory": { "unit": "MiB used, by device", "before": memory_before, "after": memory_after },
        "not_measured": runner.not_measured(),
    })
}

/// Says what comes, while somebody waits.
fn announce(what: &str, runner: &Runner) {
    say(&format!("{:>4.0} s left: {what}", runner.left().as_secs_f64()));
}

//! The CUDA kernels: compiled for each architecture by NVIDIA's own compiler and assembler, emulated on
//! the host against the definitions, and run on a device where there is one.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::ptx::{self, Assembled};
use super::stage::{Stage, count};
use super::totals::Totals;
use super::wheels;
use super::workspace;
use crate::parallel::parallel_map;
use crate::shell::{find_program, program, root, run, say, target};

/// Packages of `PyPI` that hold the compiler's library and the assembler.
const WHEELS: &str = "xtask/requirements/cuda.txt";
const COMPILER: &str = "nvidia/cuda_nvrtc/lib";
const ASSEMBLER: &str = "nvidia/cuda_nvcc/bin/ptxas";

/// A100, H100 and H200, `GeForce` 50.
const ARCHITECTURES: [&str; 3] = ["80", "90", "120"];

/// Tests fail without a device where this is set; otherwise they do nothing.
const EXPECTED: &str = "SETUN_EXPECT_CUDA";
const NO_DEVICE_TEST: &str = "a_device_that_is_not_there_is_an_error";

const NOT_LINUX: &str = "NVIDIA's compiler is fetched for Linux on x86-64";
const NO_COMPILER: &str = "needs a C++ compiler; on Debian, as root: apt-get install g++";

const INPUTS: [&str; 7] = [
    WHEELS,
    "shaders/cuda/",
    "shaders/src/",
    "crates/setun-gpu/",
    "crates/setun-ops/src/",
    "crates/setun-parity/",
    "xtask/src/test/cuda.rs",
];

/// The stage.
pub(super) fn stage() -> Stage {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Stage::absent("cuda", NOT_LINUX);
    }
    if find_program("c++").is_none() {
        return Stage::absent("cuda", NO_COMPILER);
    }
    wheels::stage("cuda", test).for_changes_of(&INPUTS)
}

fn test(totals: &mut Totals) -> Result<()> {
    let tools = wheels::fetched("cuda", &root().join(WHEELS))?;
    let tools = tools.context("NVIDIA's compiler cannot be had from PyPI")?;
    let folder = target().join("cuda").join("ptx");
    let kernels = compile(&tools, &folder)?;
    let assembled = assemble(&tools, &folder, &kernels)?;
    println!("{}", ptx::table(&ARCHITECTURES, &assembled)?);
    ptx::check(&ARCHITECTURES, &assembled)?;
    count(&mut tests("cuda_emulated"), totals)?;
    if has_device() {
        return count(tests("cuda").args(["--test", "cuda_lost"]).env(EXPECTED, "1"), totals);
    }
    say("no NVIDIA device: the kernels have been played by the host, and run nowhere else");
    count(tests("cuda").args(["--", NO_DEVICE_TEST]), totals)
}

fn tests(name: &str) -> Command {
    let mut command = workspace::tests();
    command.args(["--no-fail-fast", "--test", name]);
    command
}

/// What a driver makes, in Linux and under Windows.
fn has_device() -> bool {
    ["/dev/nvidiactl", "/dev/dxg"].into_iter().any(|path| Path::new(path).exists())
}

/// Writes the PTX of every kernel for every architecture; returns the kernels' file names.
fn compile(tools: &Path, folder: &Path) -> Result<Vec<String>> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let compiler = workspace::build_example("cuda_ptx")?;
    // The compiler has one thread; a process for each architecture uses more processors.
    parallel_map(&ARCHITECTURES, |architecture| {
        let mut command = program(&compiler);
        command.arg(folder).arg(architecture);
        run(command.env("LD_LIBRARY_PATH", tools.join(COMPILER)))
    })?;
    let files = folder.join(ARCHITECTURES[0]).read_dir()?;
    let names = files.map(|file| Ok(file?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_>>()?;
    names.sort();
    ensure!(!names.is_empty(), "no kernel was compiled");
    Ok(names)
}

/// Assembles all of them; for each kernel one of each architecture.
fn assemble(
    tools: &Path,
    folder: &Path,
    kernels: &[String],
) -> Result<Vec<(String, Vec<Assembled>)>> {
    parallel_map(kernels, |name| {
        let each = ARCHITECTURES.iter().map(|architecture| {
            assemble_one(tools, &folder.join(architecture).join(name), architecture)
        });
        Ok((name.trim_end_matches(".ptx").to_owned(), each.collect::<Result<_>>()?))
    })
}

fn assemble_one(tools: &Path, source: &Path, architecture: &str) -> Result<Assembled> {
    let output = Command::new(tools.join(ASSEMBLER))
        .args(["-v", &format!("-arch=sm_{architecture}"), "-o"])
        .arg(source.with_extension("cubin"))
        .arg(source)
        .output()
        .context("cannot start ptxas")?;
    let report = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} for {architecture}:\n{report}", source.display());
    Assembled::read(&report, &fs::read_to_string(source)?)
        .with_context(|| format!("{} for {architecture}", source.display()))
}

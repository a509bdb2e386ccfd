//! The CUDA kernels: compiled for each architecture by NVIDIA's own compiler and assembler, emulated on
//! the host against the definitions, and run on a device where there is one.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::stage::Check;
use super::{wheels, workspace};
use crate::files::under;
use crate::parallel::parallel_map;
use crate::shell::{find_program, program, run, say, target};

/// Packages of `PyPI` that hold the compiler's library and the assembler.
const WHEELS: &str = "xtask/requirements/cuda.txt";
const COMPILER: &str = "nvidia/cuda_nvrtc/lib";
const ASSEMBLER: &str = "nvidia/cuda_nvcc/bin/ptxas";

/// A100, H100 and H200, `GeForce` 50.
const ARCHITECTURES: [&str; 3] = ["80", "90", "120"];

/// Tests fail without a device where this is set; otherwise they do nothing.
const EXPECTED: &str = "SETUN_EXPECT_CUDA";
const NO_DEVICE_TEST: &str = "a_device_that_is_not_there_is_an_error";

const IS_LINUX: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));
const NOT_LINUX: &str = "NVIDIA's compiler is fetched for Linux on x86-64";

pub(super) const INPUTS: [&str; 7] = [
    WHEELS,
    "shaders/cuda/",
    "shaders/src/",
    "crates/setun-gpu/",
    "crates/setun-ops/src/",
    "crates/setun-parity/",
    "xtask/src/test/cuda.rs",
];

pub(super) fn test(check: &mut Check) -> Result<()> {
    check.needs(IS_LINUX, NOT_LINUX)?;
    check.needs_packages(find_program("c++").is_some(), "a C++ compiler", &["g++"])?;
    wheels::need(check)?;
    let tools = wheels::fetched(check.stage, WHEELS)?;
    let tools = tools.context("NVIDIA's compiler cannot be had from PyPI")?;
    let folder = target().join("cuda").join("ptx");
    compile(&tools, &folder)?;
    let kernels = assemble(&tools, &folder)?;
    println!("{}", table(&kernels)?);
    check_spills(&kernels)?;
    check.count(&mut tests("cuda_emulated"))?;
    // What a driver makes, in Linux and under Windows.
    if ["/dev/nvidiactl", "/dev/dxg"].into_iter().any(|path| Path::new(path).exists()) {
        return check.count(tests("cuda").args(["--test", "cuda_lost"]).env(EXPECTED, "1"));
    }
    say("no NVIDIA device: the kernels have been played by the host, and run nowhere else");
    check.count(tests("cuda").args(["--", NO_DEVICE_TEST]))
}

fn tests(name: &str) -> Command {
    let mut command = workspace::tests();
    command.args(["--no-fail-fast", "--test", name]);
    command
}

/// Writes the PTX of every kernel for every architecture.
fn compile(tools: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let compiler = workspace::build_example("cuda_ptx")?;
    // The compiler has one thread; a process for each architecture uses more processors.
    let compile_for = |architecture: &&str| {
        let mut command = program(&compiler);
        command.arg(folder).arg(architecture);
        run(command.env("LD_LIBRARY_PATH", tools.join(COMPILER)))
    };
    parallel_map(&ARCHITECTURES, compile_for).map(drop)
}

/// Assembles all kernels, each for every architecture.
fn assemble(tools: &Path, folder: &Path) -> Result<Vec<Kernel>> {
    let files = under(&folder.join(ARCHITECTURES[0]))?;
    ensure!(!files.is_empty(), "no kernel was compiled");
    parallel_map(&files, |file| {
        let name = file.file_name().unwrap_or_default();
        let each = ARCHITECTURES.iter().map(|architecture| {
            let source = folder.join(architecture).join(name);
            assemble_one(tools, &source, architecture)
                .with_context(|| format!("{} for {architecture}", source.display()))
        });
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        Ok((stem.into_owned(), each.collect::<Result<_>>()?))
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
    ensure!(output.status.success(), "{report}");
    Assembled::read(&report, &fs::read_to_string(source)?)
}

/// A kernel as assembled for one architecture.
#[derive(Clone, Debug, PartialEq)]
struct Assembled {
    registers: u32,
    /// Bytes of registers that went to memory and came back.
    spilled: u32,
    /// Bytes of memory that a block shares.
    shared: u32,
    /// Whether it forms products.
    products: bool,
}

impl Assembled {
    /// Reads the assembler's report and the PTX.
    fn read(report: &str, text: &str) -> Result<Self> {
        let before = |unit: &str| -> Option<u32> {
            let words: Vec<&str> = report[..report.find(unit)?].split_whitespace().collect();
            words.last()?.parse().ok()
        };
        Ok(Self {
            registers: before(" registers").context("the assembler names no registers")?,
            spilled: before(" bytes spill stores").unwrap_or(0)
                + before(" bytes spill loads").unwrap_or(0),
            shared: before(" bytes smem").unwrap_or(0),
            products: text.contains("\tdp4a") || text.contains("\tmma."),
        })
    }
}

/// The name of a kernel, and how it is assembled for each architecture.
type Kernel = (String, Vec<Assembled>);

/// A line for each kernel.
fn table(kernels: &[Kernel]) -> Result<String> {
    let width = kernels.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = format!("{:width$}  shared", "kernel");
    for architecture in ARCHITECTURES {
        write!(text, "  sm_{architecture:<4}")?;
    }
    text.push('\n');
    for (name, each) in kernels {
        write!(text, "{name:width$}  {:6}", each.first().map_or(0, |one| one.shared))?;
        for one in each {
            let spilled = if one.spilled > 0 { format!("+{}", one.spilled) } else { String::new() };
            write!(text, "  {:>3}{spilled:<4}", one.registers)?;
        }
        text.push('\n');
    }
    text += "registers of a thread, +bytes spilled; bytes of memory that a block shares\n";
    Ok(text)
}

/// Products keep all they have in registers.
fn check_spills(kernels: &[Kernel]) -> Result<()> {
    for (name, each) in kernels {
        for (architecture, Assembled { spilled, products, .. }) in ARCHITECTURES.iter().zip(each) {
            let is_good = !products || *spilled == 0;
            ensure!(is_good, "{name} for sm_{architecture} spills {spilled} bytes");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "ptxas info    : Compiling entry function 'gate' for 'sm_90'\n    \
                          8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n\
                          ptxas info    : Used 56 registers, used 1 barriers, 1899 bytes smem\n";
    const TEXT: &str = "\tmov.u32 %r1, 0;\n$L__BB0_1:\n\tand.b32 %r1, %r2, 3;\n\
                        \tdp4a.u32.s32 %r3, %r1, %r4, %r3;\n\t.loc 1;\n$L__BB0_2:\n\tret;\n";

    #[test]
    fn a_report_is_read() {
        let found = Assembled::read(REPORT, TEXT).unwrap();
        let expected = Assembled { registers: 56, spilled: 16, shared: 1899, products: true };
        assert_eq!(found, expected);
        assert!(Assembled::read("", TEXT).is_err());
    }

    #[test]
    fn products_may_not_spill() {
        let kernels = |spilled| {
            let one = Assembled { registers: 9, spilled, shared: 0, products: true };
            [("gate".to_owned(), vec![one])]
        };
        assert!(check_spills(&kernels(0)).is_ok());
        let error = check_spills(&kernels(4)).unwrap_err().to_string();
        assert_eq!(error, "gate for sm_80 spills 4 bytes");
        let table = table(&kernels(4)).unwrap();
        let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["gate", "0", "9+4"], "{table}");
    }
}

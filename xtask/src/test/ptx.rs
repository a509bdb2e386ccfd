//! Register and instruction counts of assembled CUDA kernels.

use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

/// A kernel as assembled for one architecture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assembled {
    registers: u32,
    /// Bytes of registers that went to memory and came back.
    spilled: u32,
    /// Bytes of memory that a block shares.
    shared: u32,
    /// Whether it forms products.
    products: bool,
}

impl Assembled {
    /// Of the assembler's report and the PTX.
    pub(super) fn read(report: &str, text: &str) -> Result<Self> {
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

/// A line for each kernel.
pub(super) fn table(
    architectures: &[&str],
    kernels: &[(String, Vec<Assembled>)],
) -> Result<String> {
    let width = kernels.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = format!("{:width$}  shared", "kernel");
    for architecture in architectures {
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
pub(super) fn check(architectures: &[&str], kernels: &[(String, Vec<Assembled>)]) -> Result<()> {
    for (name, each) in kernels {
        for (architecture, one) in architectures.iter().zip(each) {
            if one.products && one.spilled > 0 {
                bail!("{name} for sm_{architecture} spills {} bytes", one.spilled);
            }
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
        assert!(check(&["90"], &kernels(0)).is_ok());
        let error = check(&["90"], &kernels(4)).unwrap_err().to_string();
        assert_eq!(error, "gate for sm_90 spills 4 bytes");
        let table = table(&["90"], &kernels(4)).unwrap();
        let words: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words, ["gate", "0", "9+4"], "{table}");
    }
}

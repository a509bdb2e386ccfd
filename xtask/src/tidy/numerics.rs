//! Float code without calls whose result differs between processors.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Findings;
use crate::files::read;

/// Folders whose float code is bound to the definitions.
const FLOAT_CODE: [&str; 2] = ["crates/setun-ops/src", "crates/setun-cpu/src"];

/// What must not be called here, and why. What no crate may call is clippy's to find (`clippy.toml`).
const FORBIDDEN: [(&str, &str); 7] = [
    (".exp()", "the system's mathematics differs: setun_ops::exp"),
    (".ln()", "the system's mathematics differs"),
    (".powf(", "the system's mathematics differs: libm"),
    (".sin()", "the system's mathematics differs: libm"),
    (".cos()", "the system's mathematics differs: libm"),
    (".sin_cos()", "the system's mathematics differs: libm"),
    (".tanh()", "the system's mathematics differs"),
];

/// Accessors of the table of rotations, which only look like mathematics.
const ACCESSORS: [&str; 2] = ["table.sin()", "table.cos()"];

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let mut findings = Findings::new();
    let in_float_code = |file: &&PathBuf| FLOAT_CODE.iter().any(|folder| file.starts_with(folder));
    for file in files.iter().filter(in_float_code) {
        findings.extend(forbidden(file, &read(file)?));
    }
    Ok(findings)
}

/// Tests may use anything to judge by: they come last in a file.
fn forbidden(file: &Path, text: &str) -> Findings {
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    let code = ACCESSORS.iter().fold(code.to_owned(), |code, name| code.replace(name, ""));
    let mut findings = Findings::new();
    for (at, line) in
        code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
    {
        for (call, reason) in FORBIDDEN.iter().filter(|(call, _)| line.contains(call)) {
            findings.push(format!("{}:{}: `{call}`: {reason}", file.display(), at + 1));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_found_outside_tests_and_comments() {
        let file = Path::new("gate.rs");
        for (call, reason) in FORBIDDEN {
            let text =
                format!("// x{call}y)\nlet y = x{call}z);\n#[cfg(test)]\nlet y = x{call}z);\n");
            let findings = forbidden(file, &text);
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].starts_with("gate.rs:2: ") && findings[0].ends_with(reason));
        }
        assert!(
            forbidden(file, "let y = x.min_precise(z).to_int_precise::<i32x16>();\n").is_empty()
        );
    }
}

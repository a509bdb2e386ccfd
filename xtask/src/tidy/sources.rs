//! Sizes of source files, unfinished work, and paths of one machine.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Findings;
use crate::files::read;

/// Most lines of a source file.
const MAX_LINES: usize = 400;

const SOURCES: [&str; 12] =
    ["rs", "ts", "js", "mjs", "wgsl", "cu", "cuh", "hpp", "py", "css", "html", "sh"];
const TEXTS: [&str; 5] = ["md", "toml", "json", "yml", "yaml"];

/// What must not be in a source or text, and why. Written in two halves, so that this file is
/// no finding of its own.
const FORBIDDEN: [([&str; 2], &str); 12] = [
    (["TO", "DO"], "unfinished work"),
    (["FIX", "ME"], "unfinished work"),
    (["X", "XX"], "unfinished work"),
    (["unimplemented", "!("], "unfinished work"),
    (["todo", "!("], "unfinished work"),
    (["/ro", "ot/"], "a path of one machine"),
    (["/ho", "me/"], "a path of one machine"),
    (["/Us", "ers/"], "a path of one machine"),
    (["C:\\", "Users"], "a path of one machine"),
    ([" /wo", "rk/"], "a path of one machine"),
    (["\"/wo", "rk/"], "a path of one machine"),
    (["arti", "factory"], "an address of one network"),
];

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let mut findings = Findings::new();
    for file in files.iter().filter(|file| !is_data(file)) {
        let extension = file.extension().and_then(|name| name.to_str()).unwrap_or_default();
        let is_source = SOURCES.contains(&extension);
        if !is_source && !TEXTS.contains(&extension) && !file.starts_with(".ci") {
            continue;
        }
        let text = read(file)?;
        findings.extend(forbidden(file, &text));
        let lines = text.lines().count();
        if is_source && lines > MAX_LINES && !is_generated(&text) {
            findings.push(format!("{} has {lines} of {MAX_LINES} lines", file.display()));
        }
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if !files.contains(&PathBuf::from(licence)) {
            findings.push(format!("{licence} is missing"));
        }
    }
    Ok(findings)
}

/// Fixtures come from elsewhere, and lock files are written by tools.
fn is_data(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    file.components().any(|part| part.as_os_str() == "fixtures") || name.contains("lock")
}

/// What this tool writes says so in its head; nobody reads it from top to bottom.
fn is_generated(text: &str) -> bool {
    text.lines().take(6).any(|line| line.contains("Written by `cargo xtask"))
}

fn forbidden(file: &Path, text: &str) -> Findings {
    let mut findings = Findings::new();
    for (at, line) in text.lines().enumerate() {
        for (halves, reason) in FORBIDDEN {
            if line.contains(&halves.concat()) {
                let place = format!("{}:{}", file.display(), at + 1);
                findings.push(format!("{place}: {reason}: {}", line.trim()));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_forbidden_text_is_found_with_its_line() {
        for (halves, reason) in FORBIDDEN {
            let text = format!("first\nlet x = {};\n", halves.concat());
            let findings = forbidden(Path::new("a.rs"), &text);
            assert!(
                findings[0].starts_with("a.rs:2: ") && findings[0].contains(reason),
                "{findings:?}"
            );
        }
        assert!(forbidden(Path::new("a.rs"), "work/shared is a relative path\n").is_empty());
    }

    #[test]
    fn fixtures_and_locks_are_data() {
        assert!(is_data(Path::new("tests/fixtures/x/golden.json")));
        assert!(is_data(Path::new("npm/package-lock.json")));
        assert!(!is_data(Path::new("npm/package.json")));
    }
}

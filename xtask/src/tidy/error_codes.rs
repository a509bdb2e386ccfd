//! Error codes that users compare with: one list here, in the documentation and in npm.

use std::collections::BTreeSet;

use anyhow::Result;

use super::Findings;
use crate::files::read;
use crate::shell::root;

/// The codes; the list grows by adding.
const CODES: [&str; 15] = [
    "network",
    "not-found",
    "truncated",
    "bad-checkpoint",
    "unsupported-model",
    "context-full",
    "out-of-memory",
    "backend-unavailable",
    "device-lost",
    "disposed",
    "bad-option",
    "storage-full",
    "busy",
    "io",
    "cancelled",
];

const DOCUMENT: &str = "docs/errors.md";
const SCRIPT: &str = "npm/src/errors.ts";

pub(super) fn check() -> Result<Findings> {
    let mut findings = Findings::new();
    for (file, codes) in [(DOCUMENT, documented as fn(&str) -> BTreeSet<String>), (SCRIPT, listed)]
    {
        if root().join(file).is_file() {
            findings.extend(compare(file, &codes(&read(file)?)));
        } else {
            findings.push(format!("{file} is missing"));
        }
    }
    Ok(findings)
}

fn compare(file: &str, found: &BTreeSet<String>) -> Findings {
    let expected: BTreeSet<String> = CODES.map(str::to_owned).into();
    let missing = expected.difference(found).map(|code| format!("{file} lacks the code {code}"));
    let unknown =
        found.difference(&expected).map(|code| format!("{file} has the unknown code {code}"));
    missing.chain(unknown).collect()
}

/// Codes that begin a heading, a table row or a list item.
fn documented(text: &str) -> BTreeSet<String> {
    let beginning = |line: &str| {
        let line = line.trim_start_matches(['#', '|', '-', '*', ' ']);
        Some(line.strip_prefix('`')?.split_once('`')?.0.to_owned())
    };
    let entries = text.lines().filter(|line| line.starts_with(['#', '|', '-', '*']));
    entries.filter_map(beginning).collect()
}

/// Codes of the array `ERROR_CODES`.
fn listed(text: &str) -> BTreeSet<String> {
    let array = text.split_once("ERROR_CODES = [").and_then(|(_, rest)| rest.split_once(']'));
    let (array, _) = array.unwrap_or_default();
    array.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lists_are_read() {
        let table = "# Errors\n\n| code | remedy |\n|---|---|\n| `network` | Try `again`. |\n\n## `disposed`\n";
        let expected: BTreeSet<String> = ["disposed".to_owned(), "network".to_owned()].into();
        assert_eq!(documented(table), expected);
        let script = "export const ERROR_CODES = [\n  \"network\",\n  \"disposed\",\n] as const;\n\"other\"\n";
        assert_eq!(listed(script), expected);
        assert!(listed("").is_empty());
    }

    #[test]
    fn differences_are_told_both_ways() {
        let mut found: BTreeSet<String> = CODES.map(str::to_owned).into();
        assert!(compare("f", &found).is_empty());
        found.remove("network");
        found.insert("internal".to_owned());
        let findings = compare("f", &found);
        assert_eq!(findings, ["f lacks the code network", "f has the unknown code internal"]);
    }
}

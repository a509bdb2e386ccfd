//! Prose: lengths of documents, cells and lines, first words of module docs, words of the field.

mod markdown;
mod words;

use std::path::{Path, PathBuf};

use anyhow::Result;

use self::words::Word;
use super::Findings;
use crate::files::read;

/// Documents with a limit on their words, code blocks left out.
const LENGTHS: [(&str, usize); 4] = [
    ("README.md", 900),
    ("ARCHITECTURE.md", 1500),
    ("npm/README.md", 1500),
    ("docs/performance.md", 1500),
];

/// First words of a sentence that describes a thing where a name would do.
const RIDDLES: [&str; 8] =
    ["What", "Who", "How", "Where", "When", "Whatever", "Whether", "Whoever"];

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let words = words::list()?;
    let mut findings = Findings::new();
    for file in files.iter().filter(|file| !is_data(file)) {
        match file.extension().and_then(|name| name.to_str()) {
            Some("md") => findings.extend(of_document(file, &read(file)?, &words)),
            Some("rs" | "ts" | "js" | "mjs") => {
                findings.extend(of_source(file, &read(file)?, &words));
            }
            _ => {}
        }
    }
    Ok(findings)
}

/// Fixtures come from elsewhere, and the tests below hold what is found.
fn is_data(file: &Path) -> bool {
    file.ends_with("tidy/prose/mod.rs")
        || file
            .components()
            .any(|part| part.as_os_str() == "fixtures" || part.as_os_str() == "corpus")
}

fn of_document(file: &Path, text: &str, words: &[Word]) -> Findings {
    let document = markdown::read(text);
    let mut findings = Findings::new();
    let limit = LENGTHS.iter().find(|(name, _)| file == Path::new(name));
    if let Some((_, limit)) = limit.filter(|(_, limit)| document.words > *limit) {
        findings.push(format!("{} has {} of {limit} words", file.display(), document.words));
    }
    let place = |line: usize| format!("{}:{line}", file.display());
    findings.extend(document.wide_cells.iter().map(|(line, width)| {
        format!("{}: a cell of {width} of {} characters", place(*line), markdown::MAX_CELL)
    }));
    findings.extend(document.wide_lines.iter().map(|(line, width)| {
        format!("{}: {width} of {} characters", place(*line), markdown::MAX_LINE)
    }));
    for (line, text) in &document.prose {
        findings.extend(words::found(text, words).map(|word| format!("{}: {word}", place(*line))));
    }
    findings
}

fn of_source(file: &Path, text: &str, words: &[Word]) -> Findings {
    let mut findings = Findings::new();
    if let Some(first) = first_of_module(file, text).filter(|first| RIDDLES.contains(first)) {
        findings.push(format!("{}: its first line begins with {first}", file.display()));
    }
    for (at, line) in text.lines().enumerate() {
        let found = words::found(line, words);
        findings.extend(found.map(|word| format!("{}:{}: {word}", file.display(), at + 1)));
    }
    findings
}

/// The first word of a module's documentation.
fn first_of_module<'a>(file: &Path, text: &'a str) -> Option<&'a str> {
    let begin = if file.extension().is_some_and(|name| name == "rs") { "//!" } else { "/**" };
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && *line != "/**")?;
    let first = first.strip_prefix(begin).or_else(|| first.strip_prefix('*'))?;
    first.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Vec<Word> {
        words::parse("so many | a number\nMOST_* | MAX_\n").unwrap()
    }

    #[test]
    fn riddles_and_words_of_a_source_are_found() {
        let text = "//! What a thing does.\n\nconst MOST_LINES: u8 = 1; // so many\n";
        let findings = of_source(Path::new("a.rs"), text, &list());
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert_eq!(findings[0], "a.rs: its first line begins with What");
        assert_eq!(findings[1], "a.rs:3: `so many`: a number");
        assert_eq!(findings[2], "a.rs:3: `MOST_*`: MAX_");
        let good = "//! Cache residency of a sequence.\n\nlet almost_so = \"so manyfold\";\n";
        assert!(of_source(Path::new("a.rs"), good, &list()).is_empty());
        let script = "/**\n * How it is done.\n */\n";
        assert_eq!(of_source(Path::new("a.ts"), script, &list()).len(), 1);
    }

    #[test]
    fn a_document_is_measured() {
        let wide = "x".repeat(201);
        let text = format!(
            "# Title\n\n{wide}\n\n| a | b |\n|---|---|\n| {} | so many |\n\n```\nso many {wide}\n```\n",
            "y".repeat(101)
        );
        let findings = of_document(Path::new("docs/x.md"), &text, &list());
        assert_eq!(
            findings,
            [
                "docs/x.md:7: a cell of 101 of 100 characters",
                "docs/x.md:3: 201 of 200 characters",
                "docs/x.md:7: `so many`: a number"
            ]
        );
        let long = "word ".repeat(901);
        let findings = of_document(Path::new("README.md"), &long, &list());
        assert_eq!(findings[0], "README.md has 901 of 900 words");
    }
}

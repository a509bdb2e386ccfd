//! The licences of everything that is shipped: checked against the list in `about.toml`, and
//! gathered with their texts.

mod crates;
mod expression;
mod packages;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::files::{read, write_if_changed};
use crate::licences::expression::Accepted;
use crate::metadata::Platform;
use crate::shell::{root, say};

/// A part made by others: a crate or an npm package.
struct Part {
    name: String,
    version: String,
    licence: String,
    authors: Vec<String>,
    /// Names and texts of its licence files.
    texts: Vec<(String, String)>,
}

/// Checks the licence of every crate of the workspace, on every platform.
pub(crate) fn check() -> Result<Vec<String>> {
    let accepted = accepted()?;
    let mut findings = Vec::new();
    for part in crates::all()? {
        if accepted.choose(&part.licence).is_none() {
            findings.push(format!(
                "{} {}: licence {:?} is not in the list of about.toml",
                part.name, part.version, part.licence
            ));
        }
    }
    Ok(findings)
}

/// The text of `THIRD_PARTY_LICENSES` of the npm package.
pub(crate) fn of_npm_package() -> Result<String> {
    let mut parts = crates::linked_into(&["setun-wasm", "setun-grammar-wasm"], Platform::Package)?;
    parts.extend(packages::bundled("npm")?);
    gather("the npm package setun", parts, &accepted()?)
}

/// `cargo xtask licences`: the same for the `setun` command, for whoever ships it.
pub(crate) fn run_command(to: &Path) -> Result<()> {
    let parts = crates::linked_into(&["setun-cli"], Platform::Here)?;
    let text = gather("the command setun", parts, &accepted()?)?;
    write_if_changed(&root().join(to), text.as_bytes())?;
    say(&format!("wrote {}", to.display()));
    Ok(())
}

fn accepted() -> Result<Accepted> {
    Accepted::from_about(&read("about.toml")?)
}

fn gather(product: &str, parts: Vec<Part>, accepted: &Accepted) -> Result<String> {
    let mut owners = BTreeMap::<String, Vec<String>>::new();
    let mut list = String::new();
    for part in parts {
        let Some(chosen) = accepted.choose(&part.licence) else {
            bail!(
                "{} {}: licence {:?} is not in the list of about.toml",
                part.name,
                part.version,
                part.licence
            );
        };
        writeln!(list, "  {} {} ({})", part.name, part.version, part.licence)?;
        for text in texts(&part, &chosen)? {
            owners.entry(text).or_default().push(format!("{} {}", part.name, part.version));
        }
    }
    let mut text = format!(
        "Parts of {product} made by others\n\n{list}  the Rust standard library (MIT OR Apache-2.0)\n"
    );
    for (licence, owners) in owners {
        writeln!(text, "\n{}\n{}\n\n{licence}", "-".repeat(80), owners.join(", "))?;
    }
    Ok(text)
}

/// The texts of the licences that were chosen among `part`'s; all its texts if their files are
/// not named after them. A part without files gets the licence's own text.
fn texts(part: &Part, chosen: &[String]) -> Result<Vec<String>> {
    let named = |licence: &str| {
        let word = licence.split('-').next().unwrap_or(licence).to_uppercase();
        part.texts.iter().filter(move |(name, _)| name.to_uppercase().contains(&word))
    };
    let mut texts: Vec<&String> =
        chosen.iter().flat_map(|licence| named(licence)).map(|(_, text)| text).collect();
    if texts.is_empty() {
        texts = part.texts.iter().map(|(_, text)| text).collect();
    }
    if !texts.is_empty() {
        return Ok(texts.into_iter().map(|text| normal(text)).collect());
    }
    chosen.iter().map(|licence| standard_text(part, licence)).collect()
}

/// Lines without trailing space, so that equal licences are equal.
fn normal(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn standard_text(part: &Part, licence: &str) -> Result<String> {
    match licence {
        "Apache-2.0" => Ok(normal(&read("LICENSE-APACHE")?)),
        "MIT" => {
            let own = read("LICENSE-MIT")?;
            let (_, permission) =
                own.split_once("Permission is").context("LICENSE-MIT has no permission")?;
            let authors = match part.authors.as_slice() {
                [] => format!("the {} developers", part.name),
                authors => authors.join(", "),
            };
            Ok(normal(&format!(
                "MIT License\n\nCopyright (c) {authors}\n\nPermission is{permission}"
            )))
        }
        _ => bail!("{} {} ships no text of its licence {licence}", part.name, part.version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(licence: &str, texts: &[(&str, &str)]) -> Part {
        Part {
            name: "part".into(),
            version: "1.0.0".into(),
            licence: licence.into(),
            authors: vec!["A. Author".into()],
            texts: texts.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect(),
        }
    }

    fn list() -> Accepted {
        Accepted::from_about("accepted = [\"MIT\", \"Apache-2.0\"]").unwrap()
    }

    #[test]
    fn the_chosen_licences_text_is_kept() {
        let both =
            part("Apache-2.0 OR MIT", &[("LICENSE-APACHE", "long"), ("LICENSE-MIT", "short  ")]);
        let text = gather("x", vec![both], &list()).unwrap();
        assert!(text.contains("short\n") && !text.contains("long"), "{text}");
    }

    #[test]
    fn equal_texts_are_printed_once() {
        let parts = ["MIT", "MIT"].map(|licence| part(licence, &[("LICENSE", "the same")]));
        let text = gather("x", parts.into(), &list()).unwrap();
        assert_eq!(text.matches("the same").count(), 1, "{text}");
    }

    #[test]
    fn a_part_without_files_gets_the_standard_text() {
        let text = gather("x", vec![part("MIT", &[])], &list()).unwrap();
        assert!(text.contains("Copyright (c) A. Author"), "{text}");
        assert!(text.contains("Permission is hereby granted"), "{text}");
    }

    #[test]
    fn other_licences_are_refused() {
        let error = gather("x", vec![part("GPL-3.0-only", &[])], &list()).unwrap_err().to_string();
        assert!(error.contains("part 1.0.0") && error.contains("GPL-3.0-only"), "{error}");
    }
}

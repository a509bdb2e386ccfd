//! `THIRD_PARTY_LICENSES`: the parts made by others in what is shipped, with the texts of their licences.
//!
//! `cargo deny` checks all dependencies; this gathers those of one product. cargo-about does the same
//! for crates alone, and takes longer to compile than everything that a first page needs.

mod crates;
mod packages;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use spdx::{Expression, Licensee, ParseMode};

use crate::files::{read, write_if_changed};
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

/// The text of `THIRD_PARTY_LICENSES` of the npm package, with what any variant of it links.
pub(crate) fn of_npm_package() -> Result<String> {
    let products = ["setun-wasm", "setun-grammar-wasm"];
    let mut parts =
        crates::linked_into(&products, Platform::Wasm, &["setun-wasm/webgpu".to_owned()])?;
    parts.extend(packages::bundled("npm")?);
    gather("the npm package setun", parts, &accepted()?)
}

/// `cargo xtask licences`: the same for the `setun` command, for whoever ships it.
pub(crate) fn run_command(to: &Path, features: &[String]) -> Result<()> {
    let features: Vec<String> =
        features.iter().map(|feature| format!("setun-cli/{feature}")).collect();
    let parts = crates::linked_into(&["setun-cli"], Platform::Here, &features)?;
    let text = gather("the command setun", parts, &accepted()?)?;
    write_if_changed(&root().join(to), text.as_bytes())?;
    say(&format!("wrote {}", to.display()));
    Ok(())
}

/// The licences that setun may ship, the preferred ones first: those of `deny.toml`.
fn accepted() -> Result<Vec<Licensee>> {
    let configuration: toml::Table = read("deny.toml")?.parse().context("in deny.toml")?;
    let list = configuration.get("licenses").and_then(|licences| licences.get("allow"));
    let list = list.and_then(|list| list.as_array()).context("deny.toml allows no licence")?;
    let licensee = |name: &toml::Value| {
        Licensee::parse(name.as_str().unwrap_or_default()).context("in deny.toml")
    };
    list.iter().map(licensee).collect()
}

/// The licences to comply with so that `expression` is satisfied by accepted ones: of an OR the
/// preferred side, of an AND both.
fn choose(expression: &str, accepted: &[Licensee]) -> Result<Vec<String>> {
    let chosen = Expression::parse_mode(expression, ParseMode::LAX)?
        .minimized_requirements(accepted)
        .with_context(|| format!("{expression:?} is not allowed in deny.toml"))?;
    Ok(chosen.into_iter().map(|licence| licence.to_string()).collect())
}

fn gather(product: &str, parts: Vec<Part>, accepted: &[Licensee]) -> Result<String> {
    let mut owners = BTreeMap::<String, Vec<String>>::new();
    let mut list = String::new();
    for part in parts {
        let name = format!("{} {}", part.name, part.version);
        let chosen = choose(&part.licence, accepted).with_context(|| name.clone())?;
        writeln!(list, "  {name} ({})", part.licence)?;
        for text in texts(&part, &chosen)? {
            owners.entry(text).or_default().push(name.clone());
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

    fn list() -> Vec<Licensee> {
        ["MIT", "Apache-2.0", "Unicode-3.0"].map(|name| Licensee::parse(name).unwrap()).into()
    }

    #[test]
    fn expressions_are_satisfied_by_accepted_licences_alone() {
        let cases: [(&str, Option<&[&str]>); 8] = [
            ("MIT", Some(&["MIT"])),
            ("Apache-2.0 OR MIT", Some(&["MIT"])),
            ("MIT/Apache-2.0", Some(&["MIT"])),
            ("GPL-2.0-only OR Apache-2.0", Some(&["Apache-2.0"])),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Some(&["MIT", "Unicode-3.0"])),
            ("MIT AND GPL-3.0-only", None),
            ("Apache-2.0 WITH LLVM-exception", None),
            ("", None),
        ];
        for (expression, expected) in cases {
            let mut found = choose(expression, &list()).ok();
            if let Some(names) = &mut found {
                names.sort();
            }
            let expected = expected.map(|names| names.iter().map(ToString::to_string).collect());
            assert_eq!(found, expected, "{expression}");
        }
    }

    #[test]
    fn the_list_of_deny_toml_is_read() {
        assert_eq!(choose("Apache-2.0 OR MIT", &accepted().unwrap()).unwrap(), ["MIT"]);
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
        let error = gather("x", vec![part("GPL-3.0-only", &[])], &list()).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("part 1.0.0") && error.contains("GPL-3.0-only"), "{error}");
    }
}

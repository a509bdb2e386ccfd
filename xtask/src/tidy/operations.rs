//! Operation names: each is the name of its definition's file, and shaders name their twins.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Findings;
use crate::files::read;
use crate::shell::root;

const OPERATIONS: &str = "crates/setun-ops/src";
const SHADERS: [&str; 2] = ["wgsl", "cu"];

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let mut findings = Findings::new();
    let names = operation_names(&read(format!("{OPERATIONS}/op.rs"))?)?;
    for name in &names {
        let file = format!("{OPERATIONS}/{name}.rs");
        if !files.contains(&PathBuf::from(&file)) {
            findings.push(format!("the operation {name} has no definition {file}"));
        }
    }
    for shader in files.iter().filter(|file| is_shader(file)) {
        findings.extend(shader_finding(shader, &read(shader)?, |twin| root().join(twin).is_file()));
    }
    Ok(findings)
}

/// The strings that `Op::name` returns.
fn operation_names(source: &str) -> Result<Vec<String>> {
    let (_, body) = source.split_once("fn name(&self)").context("op.rs has no `Op::name`")?;
    let names: Vec<String> = body
        .lines()
        .map_while(|line| (line.trim() != "}" || !line.starts_with("    }")).then_some(line))
        .filter(|line| line.contains("=>"))
        .filter_map(|line| line.split('"').nth(1).map(str::to_owned))
        .collect();
    anyhow::ensure!(!names.is_empty(), "`Op::name` in op.rs names no operation");
    Ok(names)
}

fn is_shader(file: &Path) -> bool {
    let extension = file.extension().and_then(|name| name.to_str()).unwrap_or_default();
    let is_part = file.parent().is_some_and(|folder| folder.ends_with("parts"));
    file.starts_with("shaders") && SHADERS.contains(&extension) && !is_part
}

fn shader_finding(file: &Path, text: &str, exists: impl Fn(&str) -> bool) -> Option<String> {
    let twin = text.lines().find_map(|line| line.strip_prefix("// Twin:"));
    let path = twin.and_then(|twin| twin.split_whitespace().next());
    match path {
        None => Some(format!("{} names no twin (`// Twin: PATH`)", file.display())),
        Some(path) if Path::new(path).file_stem() != file.file_stem() => {
            Some(format!("{} names the twin {path}, which has another name", file.display()))
        }
        Some(path) if !exists(path) => {
            Some(format!("{} names the twin {path}, which is not there", file.display()))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_match() {
        let source = "impl Op {\n    pub fn name(&self) -> &'static str {\n        match self {\n            \
                      Self::Embed { .. } => \"embed\",\n            Self::Head { .. } => \"head\",\n        \
                      }\n    }\n    fn other() { x => \"not\" }\n}\n";
        assert_eq!(operation_names(source).unwrap(), ["embed", "head"]);
        assert!(operation_names("enum Op {}").is_err());
    }

    #[test]
    fn a_part_is_no_shader() {
        assert!(is_shader(Path::new("shaders/wgsl/embed.wgsl")));
        assert!(!is_shader(Path::new("shaders/wgsl/parts/exp.wgsl")));
        assert!(!is_shader(Path::new("shaders/src/lib.rs")));
    }

    #[test]
    fn shaders_name_a_twin_that_is_there() {
        let file = Path::new("shaders/wgsl/embed.wgsl");
        let exists = |path: &str| path == "crates/setun-ops/src/embed.rs";
        let good = "// embed\n// Twin:      crates/setun-ops/src/embed.rs (exact)\n";
        assert_eq!(shader_finding(file, good, exists), None);
        assert!(shader_finding(file, "// embed\n", exists).is_some());
        assert!(shader_finding(file, "// Twin: nowhere/embed.rs\n", exists).is_some());
        let other = Path::new("shaders/wgsl/head.wgsl");
        assert!(
            shader_finding(other, good, exists).is_some_and(|line| line.contains("another name"))
        );
    }
}

//! The workspace's packages, from `cargo metadata`, and what is linked into them, from `cargo tree`.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell::{cargo, output};

/// `cargo metadata`: the packages of the lock file.
pub(crate) fn metadata() -> Result<Value> {
    let printed = output(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    serde_json::from_str(&printed).context("cargo metadata is not JSON")
}

/// The packages of `metadata`.
pub(crate) fn packages(metadata: &Value) -> Result<&Vec<Value>> {
    metadata["packages"].as_array().context("cargo metadata has no packages")
}

/// True for a crate of this workspace.
pub(crate) fn is_ours(package: &Value) -> bool {
    package["source"].is_null()
}

/// Names and versions of all crates whose code is linked into a crate with these features for a target,
/// itself among them; procedural macros and what they use left out.
pub(crate) fn linked(
    name: &str,
    target: &str,
    features: &[String],
) -> Result<Vec<(String, String)>> {
    let mut command = cargo();
    command
        .args(["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none"])
        .args(["--format", "{p}", "--package", name, "--target", target])
        .args(["--features", &features.join(",")]);
    Ok(output(&mut command)?.lines().filter_map(name_and_version).collect())
}

/// Of `NAME vVERSION`, and what may come after it.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some((name.to_owned(), version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::name_and_version;

    #[test]
    fn lines_of_a_tree_are_read() {
        let expected = Some(("half".to_owned(), "2.7.1".to_owned()));
        for line in ["half v2.7.1", "half v2.7.1 (*)", "half v2.7.1 (/a/folder)"] {
            assert_eq!(name_and_version(line), expected, "{line}");
        }
        assert_eq!(name_and_version(""), None);
    }
}

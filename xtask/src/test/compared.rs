//! Crates of the lock files, and which of them have been compared with the list of advisories.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Result, ensure};

/// Crates by their names, and whether each has been compared; the lines before them.
#[derive(Default)]
pub(super) struct Compared {
    head: String,
    crates: BTreeMap<String, bool>,
}

impl Compared {
    /// Reads a name a line; one that is still to be compared has a question mark.
    pub(super) fn read(text: &str) -> Self {
        let mut compared = Self::default();
        for line in text.lines() {
            match line.split_once(' ') {
                _ if line.starts_with('#') => compared.head.extend([line, "\n"]),
                Some((name, _)) => drop(compared.crates.insert(name.to_owned(), false)),
                None => drop(compared.crates.insert(line.to_owned(), true)),
            }
        }
        compared
    }

    /// Number of crates of the lock files that are still to be compared.
    ///
    /// # Errors
    ///
    /// If one is not listed.
    pub(super) fn check(&self, locks: &[String]) -> Result<usize> {
        let locked = names(locks);
        let unknown: Vec<_> =
            locked.iter().filter(|name| !self.crates.contains_key(**name)).copied().collect();
        ensure!(
            unknown.is_empty(),
            "nobody has compared these crates with the advisories: {}; run `cargo xtask test --long --only \
             advisories`, or list each with a question mark",
            unknown.join(", ")
        );
        Ok(locked.iter().filter(|name| self.crates.get(**name) == Some(&false)).count())
    }

    /// The text in which all crates of the lock files have been compared.
    pub(super) fn with_all(&self, locks: &[String]) -> String {
        names(locks).iter().fold(self.head.clone(), |mut text, name| {
            let _ = writeln!(text, "{name}"); // to a string
            text
        })
    }
}

/// Names of the crates that come from a registry, each once.
fn names(locks: &[String]) -> Vec<&str> {
    let packages = locks.iter().flat_map(|lock| lock.split("[[package]]"));
    let name = |package: &str| {
        let is_from_registry = package.contains("\nsource = \"registry");
        let start = package.find("name = \"").filter(|_| is_from_registry)? + "name = \"".len();
        let length = package[start..].find('"')?;
        Some(start..start + length)
    };
    let mut names: Vec<&str> =
        packages.filter_map(|package| name(package).map(|range| &package[range])).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(names: &[&str]) -> String {
        let own = "version = 4\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n".to_owned();
        names.iter().fold(own, |lock, name| {
            lock + &format!(
                "\n[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\nsource = \"registry+x\"\n"
            )
        })
    }

    #[test]
    fn a_crate_that_nobody_has_looked_at_is_a_failure() {
        let compared = Compared::read("# last run\na\nb ?\nunused\n");
        let locks = [lock(&["a"]), lock(&["b", "a"])];
        assert_eq!(compared.check(&locks).expect("both are listed"), 1);
        let error =
            compared.check(&[lock(&["a", "quick-xml"])]).expect_err("a new one").to_string();
        assert!(
            error.starts_with("nobody has compared these crates with the advisories: quick-xml;")
        );
        let all = compared.with_all(&locks);
        assert_eq!(all, "# last run\na\nb\n");
        assert_eq!(Compared::read(&all).check(&locks).expect("all are"), 0);
    }
}

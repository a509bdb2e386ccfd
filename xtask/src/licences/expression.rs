//! Licence expressions of SPDX, as far as package manifests use them.

use anyhow::{Context, Result, ensure};

/// The licences that setun may ship, the preferred ones first.
pub(crate) struct Accepted {
    licences: Vec<String>,
}

impl Accepted {
    /// Reads the array `accepted` of cargo-about's configuration.
    pub(crate) fn from_about(text: &str) -> Result<Self> {
        let (_, rest) = text.split_once("accepted = [").context("about.toml has no `accepted`")?;
        let (list, _) = rest.split_once(']').context("about.toml: `accepted` does not end")?;
        let licences: Vec<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
        ensure!(!licences.is_empty(), "about.toml: `accepted` is empty");
        Ok(Self { licences })
    }

    /// The licences to comply with so that `expression` is satisfied by accepted ones: of an OR
    /// the preferred side, of an AND both. `None` if there is no such choice.
    pub(crate) fn choose(&self, expression: &str) -> Option<Vec<String>> {
        // Old manifests write a slash for OR.
        let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut rest = words.as_slice();
        let chosen = self.either(&mut rest)?;
        (rest.is_empty() && !chosen.is_empty()).then_some(chosen).filter(|chosen| self.all(chosen))
    }

    fn either(&self, words: &mut &[&str]) -> Option<Vec<String>> {
        let mut best = self.both(words)?;
        while let ["OR", rest @ ..] = *words {
            *words = rest;
            let other = self.both(words)?;
            if self.rank(&other) < self.rank(&best) {
                best = other;
            }
        }
        Some(best)
    }

    fn both(&self, words: &mut &[&str]) -> Option<Vec<String>> {
        let mut all = self.term(words)?;
        while let ["AND", rest @ ..] = *words {
            *words = rest;
            all.extend(self.term(words)?);
        }
        Some(all)
    }

    fn term(&self, words: &mut &[&str]) -> Option<Vec<String>> {
        match *words {
            ["(", rest @ ..] => {
                *words = rest;
                let inner = self.either(words)?;
                *words = words.strip_prefix(&[")"])?;
                Some(inner)
            }
            [licence, "WITH", exception, rest @ ..] => {
                *words = rest;
                Some(vec![format!("{licence} WITH {exception}")])
            }
            [licence, rest @ ..] => {
                *words = rest;
                Some(vec![(*licence).to_owned()])
            }
            [] => None,
        }
    }

    fn all(&self, licences: &[String]) -> bool {
        licences.iter().all(|licence| self.licences.contains(licence))
    }

    /// Place of the least preferred of `licences` in the list; past its end if one is not in it.
    fn rank(&self, licences: &[String]) -> usize {
        let place = |licence: &String| {
            self.licences.iter().position(|accepted| accepted == licence).unwrap_or(usize::MAX)
        };
        licences.iter().map(place).max().unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_satisfied_by_accepted_licences_alone() {
        let about = "accepted = [\n  \"MIT\", \"Apache-2.0\",\n  \"Unicode-3.0\",\n]\n";
        let accepted = Accepted::from_about(about).unwrap();
        let cases: &[(&str, Option<&[&str]>)] = &[
            ("MIT", Some(&["MIT"])),
            ("Apache-2.0 OR MIT", Some(&["MIT"])),
            ("MIT/Apache-2.0", Some(&["MIT"])),
            ("GPL-2.0-only OR Apache-2.0", Some(&["Apache-2.0"])),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Some(&["MIT", "Unicode-3.0"])),
            ("MIT AND GPL-3.0-only", None),
            ("(MIT OR GPL-3.0-only) AND (GPL-3.0-only OR MPL-2.0)", None),
            ("Apache-2.0 WITH LLVM-exception", None),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", Some(&["MIT"])),
            ("", None),
            ("(MIT", None),
            ("MIT OR", None),
        ];
        for (expression, expected) in cases {
            let expected =
                expected.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(accepted.choose(expression), expected, "{expression}");
        }
    }
}

//! Test counts, added up from the output of test runners, which is without colours.

use serde::{Deserialize, Serialize};

/// Tests that passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Totals {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
}

impl Totals {
    /// Adds another run's.
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// `N passed, N failed, N skipped`.
    pub(super) fn plain(self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }

    /// Adds what the lines of a runner's output say.
    pub(super) fn add_text(&mut self, text: &str) {
        for line in text.lines().map(str::trim) {
            self.add(counts(line).map(before).or_else(|| node(line)).unwrap_or_default());
        }
    }
}

/// The part of a line in which words follow their numbers, any of them absent:
/// `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; …` of cargo,
/// `Tests  1 failed | 12 passed | 2 skipped | 1 todo (16)` of vitest,
/// `1 failed, 12 passed, 2 skipped, 1 error, 3 warnings in 4.56s` of pytest.
fn counts(line: &str) -> Option<&str> {
    let pytest = || {
        let (counts, time) = line.rsplit_once(" in ")?;
        let seconds = time.split(' ').next()?.strip_suffix('s')?;
        seconds.parse::<f64>().is_ok().then_some(counts)
    };
    line.strip_prefix("test result: ").or_else(|| line.strip_prefix("Tests  ")).or_else(pytest)
}

fn before(counts: &str) -> Totals {
    let count = |word: &str| -> u64 {
        let number = counts.split_once(word).map_or("", |(head, _)| head);
        let digits = number.rsplit(|character: char| !character.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    };
    Totals {
        passed: count(" passed"),
        failed: count(" failed") + count(" error"),
        skipped: count(" skipped") + count(" ignored") + count(" todo"),
    }
}

/// `# pass 3` or `ℹ pass 3` of Node, each count on a line of its own
fn node(line: &str) -> Option<Totals> {
    let (word, count) =
        line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?.split_once(' ')?;
    let (count, none) = (count.parse().ok()?, Totals::default());
    match word {
        "pass" => Some(Totals { passed: count, ..none }),
        "fail" => Some(Totals { failed: count, ..none }),
        "skipped" | "todo" => Some(Totals { skipped: count, ..none }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runners_line_is_read() {
        let cases = [
            (
                "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s",
                [12, 0, 1],
            ),
            (
                "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
                [1, 2, 0],
            ),
            ("      Tests  12 passed (12)", [12, 0, 0]),
            ("      Tests  1 failed | 10 passed | 2 skipped (13)", [10, 1, 2]),
            (" Test Files  3 passed (3)", [0; 3]),
            ("# pass 3\n# skipped 1", [3, 0, 1]),
            ("ℹ fail 2", [0, 2, 0]),
            ("1 failed, 27 passed, 2 skipped, 3 warnings in 48.62s", [27, 1, 2]),
            ("==== 3 passed, 1 error in 61.02s (0:01:01) ====", [3, 1, 0]),
            ("FAILED test_llm.py::test - found 3 passed in mind", [0; 3]),
            ("# tests 5", [0; 3]),
            ("# pass on to the next", [0; 3]),
            ("running 3 tests", [0; 3]),
        ];
        for (text, [passed, failed, skipped]) in cases {
            let mut totals = Totals::default();
            totals.add_text(text);
            assert_eq!(totals, Totals { passed, failed, skipped }, "{text}");
        }
    }

    #[test]
    fn the_plain_form_is_fixed() {
        let mut totals = Totals { passed: 1, failed: 0, skipped: 2 };
        totals.add(Totals { passed: 3, failed: 1, skipped: 0 });
        assert_eq!(totals.plain(), "4 passed, 1 failed, 2 skipped");
    }
}

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

    /// What a line of a runner's output adds: one pattern a runner, nothing for other lines.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        let line = line.trim();
        cargo(line).or_else(|| vitest(line)).or_else(|| node(line)).or_else(|| pytest(line))
    }
}

/// `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; …`
fn cargo(line: &str) -> Option<Totals> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    Some(Totals {
        passed: before(counts, " passed")?,
        failed: before(counts, " failed")?,
        skipped: before(counts, " ignored")?,
    })
}

/// `Tests  1 failed | 12 passed | 2 skipped | 1 todo (16)`, any part absent
fn vitest(line: &str) -> Option<Totals> {
    let counts = line.strip_prefix("Tests  ")?;
    let count = |word| before(counts, word).unwrap_or(0);
    let skipped = count(" skipped") + count(" todo");
    Some(Totals { passed: count(" passed"), failed: count(" failed"), skipped })
}

/// `# pass 3` or `ℹ pass 3`, each count on a line of its own
fn node(line: &str) -> Option<Totals> {
    let mut words = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?.split(' ');
    let (word, count) = (words.next()?, words.next()?.parse().ok()?);
    let mut totals = Totals::default();
    match word {
        "pass" => totals.passed = count,
        "fail" => totals.failed = count,
        "skipped" | "todo" => totals.skipped = count,
        _ => return None,
    }
    words.next().is_none().then_some(totals)
}

/// `1 failed, 12 passed, 2 skipped, 3 warnings in 4.56s`, any part absent
fn pytest(line: &str) -> Option<Totals> {
    let (counts, time) = line.rsplit_once(" in ")?;
    time.split(' ').next()?.strip_suffix('s')?.parse::<f64>().ok()?;
    let count = |word| before(counts, word).unwrap_or(0);
    let failed = count(" failed") + count(" error");
    let totals = Totals { passed: count(" passed"), failed, skipped: count(" skipped") };
    (totals != Totals::default()).then_some(totals)
}

/// The number right before `word`.
fn before(counts: &str, word: &str) -> Option<u64> {
    let (head, _) = counts.split_once(word)?;
    head.rsplit(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runners_line_is_read() {
        let totals = |passed, failed, skipped| Some(Totals { passed, failed, skipped });
        let cases = [
            (
                "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s",
                totals(12, 0, 1),
            ),
            (
                "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
                totals(1, 2, 0),
            ),
            ("      Tests  12 passed (12)", totals(12, 0, 0)),
            ("      Tests  1 failed | 10 passed | 2 skipped (13)", totals(10, 1, 2)),
            (" Test Files  3 passed (3)", None),
            ("# pass 3", totals(3, 0, 0)),
            ("ℹ fail 2", totals(0, 2, 0)),
            ("1 failed, 27 passed, 2 skipped, 3 warnings in 48.62s", totals(27, 1, 2)),
            ("==== 3 passed, 1 error in 61.02s (0:01:01) ====", totals(3, 1, 0)),
            ("FAILED test_llm.py::test - found 3 passed in mind", None),
            ("# tests 5", None),
            ("# pass on to the next", None),
            ("running 3 tests", None),
        ];
        for (line, expected) in cases {
            assert_eq!(Totals::of_line(line), expected, "{line}");
        }
    }

    #[test]
    fn the_plain_form_is_fixed() {
        let mut totals = Totals { passed: 1, failed: 0, skipped: 2 };
        totals.add(Totals { passed: 3, failed: 1, skipped: 0 });
        assert_eq!(totals.plain(), "4 passed, 1 failed, 2 skipped");
    }
}

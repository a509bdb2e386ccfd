//! Candidates of a screened head: the tokens whose exact logits are computed.

use serde::Serialize;
use setun::forward::Profile;

/// Tokens whose exact logits were computed, a number for each decoded row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Candidates {
    /// Decoded rows that were screened.
    rows: usize,
    median: u32,
    /// As many or fewer in 99 of 100 rows.
    percentile_99: u32,
    most: u32,
    /// Rows beside these for which the whole head was read.
    full_heads: usize,
}

impl Candidates {
    /// None where no head was screened.
    pub(super) fn of(profile: &Profile) -> Option<Self> {
        let mut candidates = profile.candidates.clone();
        candidates.sort_unstable();
        let rows = candidates.len();
        // The first value that this percentage of rows does not exceed.
        let at = |percent: usize| {
            let place = (rows * percent).div_ceil(100).saturating_sub(1);
            candidates.get(place).copied().unwrap_or(0)
        };
        let full_heads = profile.full_heads;
        let any = rows + full_heads > 0;
        any.then(|| Self { rows, median: at(50), percentile_99: at(99), most: at(100), full_heads })
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        format!(
            "screened head: exact logits of {} tokens a row (median; 99 %: {}, most: {}; {} rows), and \
             the whole head for {} rows",
            self.median, self.percentile_99, self.most, self.rows, self.full_heads
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(candidates: Vec<u32>, full_heads: usize) -> Option<Candidates> {
        Candidates::of(&Profile { candidates, full_heads, ..Profile::default() })
    }

    #[test]
    fn percentiles_are_of_the_sorted_rows() {
        let found = of((1..=200).rev().collect(), 3).expect("rows");
        let expected =
            Candidates { rows: 200, median: 100, percentile_99: 198, most: 200, full_heads: 3 };
        assert_eq!(found, expected);
        let one = of(vec![7], 0).expect("a row");
        assert_eq!((one.median, one.percentile_99, one.most), (7, 7, 7));
    }

    #[test]
    fn nothing_is_reported_of_a_stored_head() {
        assert_eq!(of(vec![], 0), None);
        let full = of(vec![], 2).expect("rows");
        assert_eq!((full.rows, full.most, full.full_heads), (0, 0, 2));
    }
}

//! Lengths of the repetitions that tokens would extend, as DRY counts them.

use std::collections::BTreeMap;

/// Longer repetitions count as this long, which bounds the work and the loss.
const LONGEST: usize = 50;

/// For each token that followed an earlier occurrence of the last tokens: of how many of them,
/// at most. No match contains a breaker, and none begins before the last `range` tokens, where
/// that is not 0. The breakers are ascending.
pub(super) fn repetitions(history: &[u32], range: usize, breakers: &[u32]) -> BTreeMap<u32, usize> {
    let skipped = if range == 0 { 0 } else { history.len().saturating_sub(range) };
    let seen = &history[skipped..];
    let breaks = |token: &u32| breakers.binary_search(token).is_ok();
    let unbroken = seen.iter().rev().take(LONGEST).take_while(|token| !breaks(token));
    let end: Vec<u32> = unbroken.copied().collect(); // the last token first
    let mut lengths = BTreeMap::new();
    for (index, next) in seen.iter().enumerate().skip(1) {
        let before = seen[..index].iter().rev();
        let length = before.zip(&end).take_while(|(a, b)| a == b).count();
        if length > 0 && !breaks(next) {
            let longest = lengths.entry(*next).or_insert(0);
            *longest = length.max(*longest);
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(history: &[u32], range: usize, breakers: &[u32]) -> Vec<(u32, usize)> {
        repetitions(history, range, breakers).into_iter().collect()
    }

    #[test]
    fn the_longest_match_before_a_token_counts() {
        let history = [7, 1, 2, 3, 9, 2, 3, 8, 3, 9, 1, 2, 3];
        assert_eq!(found(&history, 0, &[]), [(8, 2), (9, 3)]);
        assert_eq!(found(&history, 7, &[]), [(8, 1), (9, 1)], "of the last seven");
        assert_eq!(found(&history, 1, &[]), []);
        assert_eq!(found(&[], 0, &[]), []);
    }

    #[test]
    fn breakers_end_a_match() {
        let history = [1, 2, 3, 9, 1, 2, 3];
        assert_eq!(found(&history, 0, &[]), [(9, 3)]);
        assert_eq!(found(&history, 0, &[2]), [(9, 1)]);
        assert_eq!(found(&history, 0, &[3]), [], "the last token is one");
        assert_eq!(found(&history, 0, &[9]), [], "the next token is one");
    }

    #[test]
    fn a_run_of_one_token_matches_itself() {
        assert_eq!(found(&[4; 5], 0, &[]), [(4, 4)]);
        assert_eq!(found(&[4; 500], 0, &[]), [(4, 50)]);
    }
}

//! `SentencePiece`'s BPE joins by score; merges in the right order do the same.

use std::collections::HashSet;

use super::{
    Warning,
    check::{Checked, Role},
};

/// The longest token, in bytes, that is looked at for its halves: longer ones are no pieces of
/// text, and would take time without bound.
const LONGEST: usize = 1024;

/// Two tokens that make a third.
struct Merge<'a> {
    score: f32,
    left: &'a str,
    right: &'a str,
    id: u32,
}

/// The merges of the first `len` tokens that join as scores do: the highest score first, of equal ones the leftmost.
///
/// Of equal scores the longer left half comes first, which lets the leftmost run of equal
/// characters grow, as a search from the left does. Where all scores are equal they say nothing;
/// the order of ids is that of training.
pub(super) fn merges<'a>(
    checked: &Checked<'a>,
    len: usize,
    warnings: &mut Vec<Warning>,
) -> Vec<(&'a str, &'a str)> {
    let is_piece = |role: Role| matches!(role, Role::Plain | Role::UserDefined);
    let pieces: Vec<u32> =
        checked.all().take(len).filter(|(_, role)| is_piece(*role)).map(|(id, _)| id).collect();
    let tokens = &checked.vocabulary.tokens;
    let lengths: HashSet<usize> = pieces.iter().map(|&id| tokens[id as usize].len()).collect();
    let score = |id: u32| checked.vocabulary.scores.get(id as usize).copied().unwrap_or(0.0);
    let are_equal = pieces.windows(2).all(|pair| score(pair[0]) == score(pair[1]));
    if are_equal {
        warnings.push(Warning::EqualScores);
    }
    let is_half = |half: &str| {
        let id = lengths.contains(&half.len()).then(|| checked.ids.get(half)).flatten();
        id.is_some_and(|&id| (id as usize) < len && is_piece(checked.role(id)))
    };
    let mut merges = Vec::new();
    for &id in &pieces {
        let token = tokens[id as usize].as_str();
        if token.len() > LONGEST {
            continue;
        }
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(at);
            if is_half(left) && is_half(right) {
                merges.push(Merge { score: score(id), left, right, id });
            }
        }
    }
    merges.sort_by(|a, b| {
        let by_score = b.score.total_cmp(&a.score);
        let by_id = if are_equal { a.id.cmp(&b.id) } else { std::cmp::Ordering::Equal };
        let by_length = b.left.len().cmp(&a.left.len()).then(b.right.len().cmp(&a.right.len()));
        by_score.then(by_id).then(by_length).then(a.id.cmp(&b.id))
    });
    merges.into_iter().map(|merge| (merge.left, merge.right)).collect()
}

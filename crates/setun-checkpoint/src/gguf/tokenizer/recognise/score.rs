//! Scores that join pieces in the order of merges.

use crate::{
    CheckpointError,
    gguf::tokenizer::{Vocabulary, Warning, added, byte_level, check::Checked, scores, token_type},
};

/// A merge and the id that it makes.
type Merge<'a> = (&'a str, &'a str, u32);

/// Gives each token a score by its place among the merges, and keeps the merges only where
/// scores would not bring them about.
pub(super) fn score(
    vocabulary: &mut Vocabulary,
    warnings: &mut Vec<Warning>,
) -> Result<(), CheckpointError> {
    let checked = Checked::new(vocabulary, &mut vec![])?;
    let merges = byte_level::merges(&checked, &mut vec![])?;
    let made = |left: &str, right: &str| checked.ids[[left, right].concat().as_str()];
    let merges: Vec<Merge<'_>> =
        merges.pairs.into_iter().map(|(left, right)| (left, right, made(left, right))).collect();
    let groups = groups(&merges, checked.len());
    let scores = scores_of(&groups, &vocabulary.token_types);
    let scored = Vocabulary { scores, merges: vec![], ..vocabulary.clone() };
    let is_same = {
        let checked = Checked::new(&scored, &mut vec![])?;
        scores::merges(&checked, added::model_len(&checked), &mut vec![])
            == in_order_of_search(groups)
    };
    vocabulary.scores = scored.scores;
    if is_same {
        vocabulary.merges.clear();
    } else {
        warnings.push(Warning::MergesBesideScores);
    }
    Ok(())
}

/// The merges cut into the shortest runs such that all that make a token are in one run. Tokens
/// of one run must have one score, as none comes before the other.
fn groups<'a>(merges: &[Merge<'a>], tokens: usize) -> Vec<Vec<Merge<'a>>> {
    let mut last = vec![0; tokens];
    for (at, &(_, _, id)) in merges.iter().enumerate() {
        last[id as usize] = at;
    }
    let (mut groups, mut end) = (Vec::new(), None);
    for (at, &merge) in merges.iter().enumerate() {
        let reach = last[merge.2 as usize];
        if end.is_none_or(|end| at > end) {
            groups.push(vec![]);
            end = Some(reach);
        }
        end = end.max(Some(reach));
        if let Some(group) = groups.last_mut() {
            group.push(merge);
        }
    }
    groups
}

/// Scores by id: falling from group to group, then for text that no merge makes.
fn scores_of(groups: &[Vec<Merge<'_>>], token_types: &[i32]) -> Vec<f32> {
    let mut scores: Vec<Option<f32>> = vec![None; token_types.len()];
    let mut next = 0.0;
    for group in groups {
        for &(_, _, id) in group {
            scores[id as usize] = Some(next);
        }
        next -= 1.0;
    }
    let mut rest = |kind: i32| {
        if ![token_type::NORMAL, token_type::USER_DEFINED].contains(&kind) {
            return 0.0;
        }
        let score = next;
        next -= 1.0;
        score
    };
    scores
        .iter()
        .zip(token_types)
        .map(|(score, kind)| score.unwrap_or_else(|| rest(*kind)))
        .collect()
}

/// The merges, where several halves of the same token are in the order that a search by scores
/// has: whichever comes first, they never meet in a text but as a run of equal characters.
fn in_order_of_search<'a>(groups: Vec<Vec<Merge<'a>>>) -> Vec<(&'a str, &'a str)> {
    let in_order = |mut group: Vec<Merge<'a>>| {
        if group.windows(2).all(|pair| pair[0].2 == pair[1].2) {
            group.sort_by_key(|(left, _, _)| std::cmp::Reverse(left.len()));
        }
        group.into_iter().map(|(left, right, _)| (left, right))
    };
    groups.into_iter().flat_map(in_order).collect()
}

//! Tokens that are found before all else, and those that end a text.

use super::{
    Warning,
    check::{Checked, Role},
    json::AddedToken,
};

/// Names of tokens that end a text or a turn wherever they occur, as llama.cpp has them.
const ENDS: [&str; 13] = [
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<｜end▁of▁sentence｜>",
];

/// The tokens that are found before all else, by id.
pub(super) fn added_tokens<'a>(checked: &Checked<'a>) -> Vec<AddedToken<'a>> {
    let added = checked.all().filter(|(_, role)| role.is_added());
    added
        .map(|(id, role)| AddedToken::new(id, checked.spelling(id), role == Role::Special))
        .collect()
}

/// How many ids are tokens of the model, from 0. What follows is only added to them, so that
/// merges never make it.
pub(super) fn model_len(checked: &Checked<'_>) -> usize {
    let is_last = |&(_, role): &(u32, Role)| role == Role::Absent;
    let tail = checked
        .all()
        .rev()
        .skip_while(is_last)
        .skip_while(|(id, role)| role.is_added() && Some(*id) != checked.special.unknown);
    tail.count()
}

/// Ids that end a text.
pub(super) fn end_tokens(checked: &Checked<'_>, warnings: &mut Vec<Warning>) -> Vec<u32> {
    let special = checked.special;
    let mut ends: Vec<u32> = special.eos.into_iter().collect();
    ends.extend(special.end_of_turn.filter(|id| Some(*id) != special.eos));
    for name in ENDS {
        let id = checked.ids.get(name).copied().filter(|&id| checked.role(id).is_added());
        if let Some(id) = id.filter(|id| !ends.contains(id)) {
            warnings.push(Warning::EndToken { token: name.to_owned(), id });
            ends.push(id);
        }
    }
    ends
}

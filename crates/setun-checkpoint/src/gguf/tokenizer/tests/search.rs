//! Merges in the order of scores against the search that defines `SentencePiece`'s BPE.

use std::collections::HashMap;

use crate::gguf::tokenizer::{Vocabulary, Warning, token_type};

use super::support::{ids, of, texts, vocabulary};

/// Joins the neighbours whose token has the highest score, the leftmost of equals, until none
/// are left; bytes for characters without a token.
fn search(vocabulary: &Vocabulary, text: &str) -> Vec<u32> {
    let text = format!("▁{}", text.replace(' ', "▁"));
    let is_text = |id: &usize| vocabulary.token_types[*id] == token_type::NORMAL;
    let of: HashMap<&str, usize> =
        vocabulary.tokens.iter().enumerate().map(|(id, token)| (token.as_str(), id)).collect();
    let id = |piece: &str| of.get(piece).copied();
    let mut pieces: Vec<String> = text.chars().map(String::from).collect();
    loop {
        let mut best: Option<(f32, usize)> = None;
        for at in 1..pieces.len() {
            let joined = id(&[&*pieces[at - 1], &*pieces[at]].concat()).filter(is_text);
            let Some(score) = joined.map(|id| vocabulary.scores[id]) else { continue };
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, at));
            }
        }
        let Some((_, at)) = best else { break };
        let right = pieces.remove(at);
        pieces[at - 1].push_str(&right);
    }
    let bytes = |piece: &str| -> Vec<usize> {
        piece.bytes().map(|byte| id(&format!("<0x{byte:02X}>")).expect("a byte")).collect()
    };
    let found = pieces.iter().flat_map(|piece| match id(piece) {
        Some(id) => vec![id],
        None => bytes(piece),
    });
    found.map(|id| u32::try_from(id).expect("an id")).collect()
}

#[test]
fn merges_join_as_scores_do() {
    let vocabulary = vocabulary("phi-3");
    let tokenizer = of(&vocabulary);
    for text in texts().iter().filter(|text| !text.is_empty() && text.len() < 2000) {
        if text.contains("<s>")
            || text.contains("</s>")
            || text.contains("<unk>")
            || text.contains("<|")
        {
            continue;
        }
        assert_eq!(ids(&tokenizer, text), search(&vocabulary, text), "{text:?}");
    }
}

#[test]
fn of_equal_scores_the_leftmost_are_joined() {
    let pieces = [("▁", 0.0), ("a", -1.0), ("b", -1.0), ("ab", -3.0), ("aa", -2.0), ("aaa", -2.0)];
    let vocabulary = Vocabulary {
        model: "llama".to_owned(),
        tokens: pieces.iter().map(|(piece, _)| (*piece).to_owned()).collect(),
        scores: pieces.iter().map(|(_, score)| *score).collect(),
        token_types: vec![token_type::NORMAL; pieces.len()],
        add_bos: Some(false),
        ..Vocabulary::default()
    };
    let tokenizer = of(&vocabulary);
    assert_eq!(ids(&tokenizer, "aaaa"), [0, 5, 1]);
    for text in ["aaaaa", "aaab", "aab", "abaaab", "aaaaaaab", "baaaabaa"] {
        assert_eq!(ids(&tokenizer, text), search(&vocabulary, text), "{text}");
    }
}

#[test]
fn equal_scores_leave_the_order_of_ids() {
    let mut vocabulary = vocabulary("phi-3");
    let by_score = of(&vocabulary);
    vocabulary.scores.fill(-1000.0);
    let converted = vocabulary.to_files().expect("it fits together");
    assert!(converted.warnings.contains(&Warning::EqualScores));
    let by_id = super::support::tokenizer(&converted);
    for text in ["Hello world, how is it?", "It rained for a week.", "internationalisation"] {
        assert_eq!(ids(&by_id, text), ids(&by_score, text));
    }
}

#[test]
fn bytes_stand_for_characters_without_a_token() {
    use setun_text::Tokenizer as _;
    let tokenizer = of(&vocabulary("phi-3"));
    for text in ["𓀀", "a𓀀b", "\u{7}", "\u{0}", "ᚠᛇᚻ"] {
        let ids = ids(&tokenizer, text);
        assert!(ids.iter().any(|id| (3..259).contains(id)), "{text:?}: {ids:?}");
        assert_eq!(tokenizer.decode(&ids, false).expect("any ids"), text);
    }
    assert_eq!(tokenizer.decode(&[3 + 0xF0], false).expect("any ids"), "\u{FFFD}");
    assert_eq!(tokenizer.decode(&[3 + 0xC3, 3 + 0xBC], false).expect("any ids"), "ü");
}

//! Looking up what a text said before.

use proptest::prelude::*;

use super::*;

impl PromptLookup {
    /// Up to `most` tokens that may follow a history.
    fn lookup(&mut self, history: &[u32], most: usize) -> Vec<u32> {
        self.find(history).map_or_else(Vec::new, |found| found.follow(history, most))
    }
}

/// The definition: the longest run at the end, its last place before, what followed.
fn by_search(text: &[u32], (shortest, longest): (usize, usize), most: usize) -> Vec<u32> {
    for length in (shortest..=longest.min(text.len())).rev() {
        let run = &text[text.len() - length..];
        for end in (length..text.len()).rev() {
            if &text[end - length..end] == run {
                let mut whole = text.to_vec();
                (0..most).for_each(|place| whole.push(whole[end + place]));
                return whole.split_off(text.len());
            }
        }
    }
    vec![]
}

#[test]
fn goes_on_as_the_text_did_the_last_time() {
    let lookup = |text: &[u32], most| PromptLookup::new(2, 3).lookup(text, most);
    assert_eq!(lookup(&[1, 2, 3, 4, 5, 1, 2], 3), [3, 4, 5]);
    assert_eq!(lookup(&[1, 2, 3, 1, 2, 4, 1, 2], 2), [4, 1], "the most recent");
    assert_eq!(lookup(&[9, 1, 2, 3, 8, 1, 2, 4, 9, 1, 2], 2), [3, 8], "of the longest");
    assert_eq!(lookup(&[5, 1, 2, 1, 2], 5), [1, 2, 1, 2, 1], "and on into what it proposes");
    assert_eq!(lookup(&[1, 2, 3, 2], 4), [0; 0], "one token is too few");
    assert_eq!(lookup(&[7, 7], 4), [0; 0], "nothing has followed yet");
    assert_eq!(lookup(&[7, 7, 7], 4), [7; 4]);
    assert_eq!(lookup(&[], 4), [0; 0]);
}

proptest! {
    #[test]
    fn finds_what_a_search_finds(
        text in prop::collection::vec(0..4u32, 0..60),
        steps in prop::collection::vec(1..9usize, 1..8),
        (shortest, more, most) in (1..4usize, 0..4usize, 1..9usize),
    ) {
        let lengths = (shortest, shortest + more);
        let mut lookup = PromptLookup::new(lengths.0, lengths.1);
        let mut len = 0;
        for step in steps.into_iter().cycle() {
            // As a text grows, by one token or several.
            let found = lookup.lookup(&text[..len], most);
            prop_assert_eq!(found, by_search(&text[..len], lengths, most), "{:?}", &text[..len]);
            if len == text.len() {
                break;
            }
            len = text.len().min(len + step);
        }
    }
}

#[test]
fn a_step_notes_only_what_is_new() {
    let mut lookup = PromptLookup::new(1, 3);
    let text: Vec<u32> = (0..1000).collect();
    lookup.lookup(&text, 1);
    let places = |lookup: &PromptLookup| lookup.places.len();
    assert_eq!((places(&lookup), lookup.indexed), (999 + 998 + 997, 1000));
    // A history whose old part has changed shows what is looked at again: nothing of it.
    let other: Vec<u32> = (5000..6000).chain([7000, 7001]).collect();
    lookup.lookup(&other, 1);
    assert_eq!(places(&lookup), 999 + 998 + 997 + 2 * 3);
}

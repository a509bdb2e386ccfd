//! Strings that end a generation.

use std::sync::Arc;

use aho_corasick::{
    Anchored, MatchKind,
    automaton::{Automaton, StateID},
    nfa::noncontiguous::NFA,
};

use crate::TextError;

/// Watches a stream of text for strings that end it.
///
/// - The string that is **complete first** wins, whatever pieces the text comes in; of two that
///   end at the same character, the longer one.
/// - Text goes out as soon as it cannot be part of a stop string any more, so nothing of one is
///   ever shown; at most the longest string's length less one is held back.
/// - A byte of text is one step of an automaton, however many strings there are and however long
///   they are. Clones share the automaton.
#[derive(Clone, Debug)]
pub struct StopStrings {
    matcher: Option<Arc<Matcher>>, // none without strings
    state: StateID,
    held: String,
    stopped: Option<String>,
}

/// An automaton over the bytes of text (Aho and Corasick, 1975).
#[derive(Debug)]
struct Matcher {
    stops: Vec<String>,
    automaton: NFA,
    start: StateID,
    /// For each state the bytes of the longest beginning of a string with which the text ends there.
    depths: Vec<u32>,
}

/// What one piece of text led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopStep {
    /// Text to show now; may be empty.
    pub text: String,
    /// The stop string that was found. Nothing comes after it.
    pub stopped: Option<String>,
}

impl StopStrings {
    /// Watches for `stops`; with none of them all text passes straight through.
    ///
    /// # Errors
    ///
    /// If one is empty, or they are too many for the memory that an automaton may take.
    pub fn new(stops: Vec<String>) -> Result<Self, TextError> {
        if let Some(index) = stops.iter().position(String::is_empty) {
            return Err(TextError::EmptyStopString { index });
        }
        let matcher = if stops.is_empty() { None } else { Some(Matcher::new(stops)?) };
        let state = matcher.as_ref().map_or(StateID::ZERO, |matcher| matcher.start);
        Ok(Self { matcher: matcher.map(Arc::new), state, held: String::new(), stopped: None })
    }

    /// Whether there is none to watch for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.matcher.is_none()
    }

    /// Takes the next piece of text. After a stop string everything is dropped.
    pub fn push(&mut self, text: &str) -> StopStep {
        let Some(matcher) = &self.matcher else {
            return StopStep { text: text.to_owned(), stopped: None };
        };
        if self.stopped.is_some() {
            return StopStep { text: String::new(), stopped: self.stopped.clone() };
        }
        let known = self.held.len();
        let mut text = std::mem::take(&mut self.held) + text;
        for end in known + 1..=text.len() {
            self.state = matcher.next(self.state, text.as_bytes()[end - 1]);
            if let Some(stop) = matcher.longest_match(self.state) {
                text.truncate(end - stop.len());
                self.stopped = Some(stop.to_owned());
                return StopStep { text, stopped: self.stopped.clone() };
            }
        }
        self.held = text.split_off(text.len() - matcher.depth(self.state));
        StopStep { text, stopped: None }
    }

    /// The text still held back, at the end of a generation that met no stop string.
    pub fn flush(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

impl Matcher {
    fn new(stops: Vec<String>) -> Result<Self, TextError> {
        let mut builder = NFA::builder();
        builder.match_kind(MatchKind::Standard).prefilter(false);
        let automaton = builder.build(&stops).map_err(|error| failed(&error))?;
        let start = automaton.start_state(Anchored::No).map_err(|error| failed(&error))?;
        let mut matcher = Self { stops: vec![], automaton, start, depths: vec![] };
        // A string is the way from the start to its own state.
        for stop in &stops {
            let mut state = start;
            for (depth, byte) in (1..).zip(stop.bytes()) {
                state = matcher.next(state, byte);
                let index = state.as_usize();
                matcher.depths.resize(matcher.depths.len().max(index + 1), 0);
                matcher.depths[index] = depth;
            }
        }
        Ok(Self { stops, ..matcher })
    }

    fn next(&self, state: StateID, byte: u8) -> StateID {
        self.automaton.next_state(Anchored::No, state, byte)
    }

    fn depth(&self, state: StateID) -> usize {
        self.depths.get(state.as_usize()).map_or(0, |&depth| depth as usize)
    }

    /// The longest string with which the text ends.
    fn longest_match(&self, state: StateID) -> Option<&str> {
        if !self.automaton.is_match(state) {
            return None;
        }
        let found = (0..self.automaton.match_len(state))
            .map(|index| self.automaton.match_pattern(state, index).as_usize())
            .filter_map(|pattern| self.stops.get(pattern).map(String::as_str));
        found.max_by_key(|stop| stop.len())
    }
}

fn failed(error: &dyn std::fmt::Display) -> TextError {
    TextError::StopStrings { reason: error.to_string() }
}

/// Where the string that is complete first begins, and which it is.
pub(crate) fn first_match<'a>(stops: &'a [String], text: &str) -> Option<(usize, &'a str)> {
    stops
        .iter()
        .filter_map(|stop| text.find(stop.as_str()).map(|start| (start, stop.as_str())))
        .min_by_key(|&(start, stop)| (start + stop.len(), start))
}

/// Length in bytes of the longest end of `text` that is the beginning of a stop string.
pub(crate) fn longest_beginning(stops: &[String], text: &str) -> usize {
    let beginning_of = |stop: &String| {
        stop.char_indices()
            .map(|(length, _)| length)
            .rev()
            .find(|&length| text.ends_with(&stop[..length]))
    };
    stops.iter().filter_map(beginning_of).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn stops(list: &[&str]) -> StopStrings {
        StopStrings::new(list.iter().map(ToString::to_string).collect()).expect("no empty string")
    }

    /// The shown text and the stop string for a text that comes in these pieces.
    fn run(mut watch: StopStrings, pieces: &[&str]) -> (String, Option<String>) {
        let mut shown = String::new();
        let mut stopped = None;
        for piece in pieces {
            let step = watch.push(piece);
            shown += &step.text;
            stopped = step.stopped;
        }
        (shown + &watch.flush(), stopped)
    }

    /// The same by looking at the text one character at a time.
    fn definition(list: &[String], text: &str) -> (String, Option<String>) {
        let ends = text.char_indices().map(|(start, character)| start + character.len_utf8());
        for end in ends {
            let complete = list.iter().filter(|stop| text[..end].ends_with(stop.as_str()));
            if let Some(stop) = complete.max_by_key(|stop| stop.len()) {
                return (text[..end - stop.len()].to_owned(), Some(stop.clone()));
            }
        }
        (text.to_owned(), None)
    }

    #[test]
    fn holds_back_what_may_become_a_stop_string() {
        let mut watch = stops(&["\nUser:"]);
        assert_eq!(watch.push("Hi\nUs"), StopStep { text: "Hi".into(), stopped: None });
        assert_eq!(watch.push("ually"), StopStep { text: "\nUsually".into(), stopped: None });
        assert_eq!(watch.push("\nUser").text, "");
        let step = watch.push(": hello");
        assert_eq!(step, StopStep { text: String::new(), stopped: Some("\nUser:".into()) });
        assert_eq!(watch.push("more").text, "");
        assert_eq!(watch.flush(), "");
    }

    #[test]
    fn shows_what_was_held_when_the_text_ends() {
        assert_eq!(run(stops(&["abcd"]), &["xab", "c"]), ("xabc".into(), None));
    }

    #[test]
    fn the_string_that_is_complete_first_wins() {
        let found = |text| run(stops(&["abcd", "bc"]), &[text]);
        assert_eq!(found("abcd"), ("a".into(), Some("bc".into())));
        assert_eq!(run(stops(&["c", "bc"]), &["abc"]), ("a".into(), Some("bc".into())));
    }

    #[test]
    fn refuses_an_empty_string() {
        let error = StopStrings::new(vec!["a".into(), String::new()]).expect_err("empty");
        assert!(matches!(error, TextError::EmptyStopString { index: 1 }));
    }

    /// Each is found in the same steps as one would be, and in a clone.
    #[test]
    fn many_long_strings_share_an_automaton() {
        let list: Vec<_> =
            (0..200).map(|number| format!("{}{number:03}", "ab".repeat(40))).collect();
        let watch = StopStrings::new(list.clone()).expect("none is empty");
        let matcher = |watch: &StopStrings| watch.matcher.as_ref().map(Arc::as_ptr);
        assert_eq!(matcher(&watch), matcher(&watch.clone()), "it is built once");
        for stop in [&list[0], &list[199]] {
            let text = format!("x{}{stop}y", &stop[..70]);
            assert_eq!(run(watch.clone(), &[&text[..50], &text[50..]]), definition(&list, &text));
        }
        assert_eq!(run(watch, &[&list[7][..82]]), (list[7][..82].to_owned(), None));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            list in vec("[aé😀]{1,4}", 0..4),
            pieces in vec("[aé😀b]{0,5}", 0..8),
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let watch = StopStrings::new(list.clone()).expect("none is empty");
            prop_assert_eq!(run(watch, &pieces), definition(&list, &pieces.concat()));
        }

        /// What was shown is always a beginning of the final text, and only a beginning of a
        /// stop string is ever missing from it.
        #[test]
        fn nothing_of_a_stop_string_leaks_and_no_more_is_held_than_needed(
            list in vec("[ab]{1,4}", 1..4),
            text in "[abc]{0,30}",
        ) {
            let (whole, _) = definition(&list, &text);
            let mut watch = StopStrings::new(list.clone()).expect("none is empty");
            let mut shown = String::new();
            for (end, character) in text.char_indices().map(|(start, c)| (start + c.len_utf8(), c)) {
                let step = watch.push(&character.to_string());
                shown += &step.text;
                prop_assert!(whole.starts_with(&shown));
                if step.stopped.is_some() {
                    prop_assert_eq!(&shown, &whole);
                    break;
                }
                let missing = &text[shown.len()..end];
                prop_assert!(missing.is_empty() || list.iter().any(|stop| stop.starts_with(missing)));
            }
        }
    }
}

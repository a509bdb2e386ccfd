//! Reasoning taken out of a stream of text.

use crate::stop_strings::longest_beginning;

/// Separates what a model thinks from its answer.
///
/// Reasoning stands at the beginning of an answer between the markers, of which the prompt may
/// have the first. Markers, and white space beside them, belong to neither text. Text goes out as
/// soon as it cannot be part of a marker, and all pieces joined do not depend on where text is cut.
#[derive(Clone, Debug)]
pub struct ReasoningReader {
    part: Part,
    held: String,
    has_begun: bool, // as something of the reasoning went out
    tokens: [Option<u32>; 2],
}

/// The part of an answer to which the next piece of text belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Before the opening marker, if one comes.
    Start,
    Reasoning,
    /// Behind the closing marker, before the answer's first word.
    Behind,
    Answer,
}

/// Reasoning and answer in one piece of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReasoningStep {
    /// Text of the reasoning; none if the piece has no part in it. A marker adds nothing.
    pub reasoning: Option<String>,
    /// Text of the answer.
    pub text: String,
}

impl ReasoningReader {
    /// The markers.
    pub const MARKERS: [&str; 2] = ["<think>", "</think>"];

    /// Begins before an answer, or behind an opening marker. `tokens` are those of the two markers, if
    /// they have one each; they may have no text.
    #[must_use]
    pub fn new(tokens: [Option<u32>; 2], is_open: bool) -> Self {
        let part = if is_open { Part::Reasoning } else { Part::Start };
        Self { part, held: String::new(), has_begun: false, tokens }
    }

    /// Whether reasoning goes on.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.part == Part::Reasoning
    }

    /// Whether nothing but white space has come.
    #[must_use]
    pub fn is_start(&self) -> bool {
        self.part == Part::Start
    }

    /// Everything that comes is the answer. What is held back is dropped.
    pub fn begin_answer(&mut self) {
        self.part = Part::Answer;
        self.held.clear();
    }

    /// Takes the next token and the text that it completes.
    pub fn push(&mut self, token: u32, text: String) -> ReasoningStep {
        if self.part == Part::Answer {
            return ReasoningStep { reasoning: None, text };
        }
        let marker = self.tokens.iter().position(|known| *known == Some(token));
        let marker = marker.map_or("", |index| Self::MARKERS[index]);
        self.held.push_str(&text);
        if !text.contains(marker) {
            self.held.push_str(marker);
        }
        let mut step = ReasoningStep::default();
        if self.part == Part::Start {
            step.text = self.open();
        }
        if self.part == Part::Reasoning {
            step.reasoning = Some(self.reasoning());
        }
        if self.part == Part::Behind {
            self.held.trim_start().clone_into(&mut step.text);
            self.held.clear();
            if !step.text.is_empty() {
                self.part = Part::Answer;
            }
        }
        step
    }

    /// Ends an answer; the step has the text that was held back.
    pub fn finish(&mut self) -> ReasoningStep {
        let held = std::mem::take(&mut self.held);
        match self.part {
            Part::Reasoning => {
                ReasoningStep { reasoning: Some(held.trim_end().to_owned()), text: String::new() }
            }
            _ => ReasoningStep { reasoning: None, text: held },
        }
    }

    /// Looks for the opening marker. The text, if it cannot come any more.
    fn open(&mut self) -> String {
        let [open, _] = Self::MARKERS;
        let text = self.held.trim_start();
        if let Some(rest) = text.strip_prefix(open) {
            self.held = rest.to_owned();
            self.part = Part::Reasoning;
        } else if !open.starts_with(text) {
            self.part = Part::Answer;
            return std::mem::take(&mut self.held);
        }
        String::new()
    }

    /// Reasoning that is certain, up to the closing marker.
    fn reasoning(&mut self) -> String {
        let [_, close] = Self::MARKERS;
        if !self.has_begun {
            self.held = self.held.trim_start().to_owned();
        }
        let end = self.held.find(close);
        let possible = || longest_beginning(&[close.to_owned()], &self.held);
        let certain = end.unwrap_or_else(|| self.held.len() - possible());
        let certain = self.held[..certain].trim_end().len();
        let rest = self.held.split_off(end.map_or(certain, |end| end + close.len()));
        let mut text = std::mem::replace(&mut self.held, rest);
        text.truncate(certain);
        self.has_begun |= !text.is_empty();
        if end.is_some() {
            self.part = Part::Behind;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const OPEN: u32 = 1;
    const CLOSE: u32 = 2;

    /// Reasoning and answer of a text that comes in these pieces, each a token.
    fn read(is_open: bool, pieces: &[(u32, &str)]) -> (String, String) {
        let mut reader = ReasoningReader::new([Some(OPEN), Some(CLOSE)], is_open);
        let (mut reasoning, mut text) = (String::new(), String::new());
        let pushed = pieces.iter().map(|&(token, piece)| reader.push(token, piece.to_owned()));
        let mut steps: Vec<_> = pushed.collect();
        steps.push(reader.finish());
        for step in steps {
            reasoning.extend(step.reasoning);
            text += &step.text;
        }
        (reasoning, text)
    }

    /// The same by looking at the whole text.
    fn definition(is_open: bool, text: &str) -> (String, String) {
        let opened = text.trim_start().strip_prefix("<think>");
        match if is_open { Some(text) } else { opened } {
            None => (String::new(), text.to_owned()),
            Some(body) => {
                let (reasoning, answer) = body.split_once("</think>").unwrap_or((body, ""));
                (reasoning.trim().to_owned(), answer.trim_start().to_owned())
            }
        }
    }

    #[test]
    fn reasoning_goes_out_as_soon_as_it_is_certain() {
        let mut reader = ReasoningReader::new([None; 2], false);
        let mut push = |text: &str| {
            let step = reader.push(9, text.to_owned());
            (step.reasoning, step.text)
        };
        let reasoning = |text: &str| (Some(text.to_owned()), String::new());
        assert_eq!(push("\n<thi"), (None, String::new()));
        assert_eq!(push("nk>\nOne"), reasoning("One"));
        assert_eq!(push(" </th"), reasoning(""), "it may be the marker");
        assert_eq!(push("is.\n"), reasoning(" </this."));
        assert_eq!(push("</think>\n"), reasoning(""));
        assert_eq!(push("\nTwo"), (None, "Two".to_owned()));
        assert_eq!(push(" <think>"), (None, " <think>".to_owned()), "it is quoted");
    }

    #[test]
    fn markers_may_be_tokens_without_text() {
        let pieces = [(OPEN, ""), (9, "a"), (CLOSE, ""), (9, "b")];
        assert_eq!(read(false, &pieces), ("a".to_owned(), "b".to_owned()));
        assert_eq!(read(true, &pieces[1..]), ("a".to_owned(), "b".to_owned()));
        let spelled = [(OPEN, "<think>"), (9, "a"), (CLOSE, "</think>"), (9, "b")];
        assert_eq!(read(false, &spelled), ("a".to_owned(), "b".to_owned()));
    }

    #[test]
    fn a_text_may_end_anywhere() {
        for (text, reasoning, answer) in [
            ("<thin", "", "<thin"),
            (" \n", "", " \n"),
            ("<think>a </thin", "a </thin", ""),
            ("<think>a \n", "a", ""),
            ("<think></think>", "", ""),
            ("<think>a</think>\n\n", "a", ""),
            ("b <think>a</think>", "", "b <think>a</think>"),
        ] {
            assert_eq!(read(false, &[(9, text)]), (reasoning.to_owned(), answer.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            is_open in any::<bool>(),
            parts in vec(prop_oneof!["[ a\n<]{0,4}", Just("<think>".into()), Just("</think>".into())], 0..7),
            cuts in vec(0..60_usize, 0..20),
        ) {
            let text: String = parts.concat();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| (9, &text[cut[0]..cut[1]])).collect();
            prop_assert_eq!(read(is_open, &pieces), definition(is_open, &text));
        }
    }
}

//! Trace of requests: a line of JSON for each, in the order in which they are sent.
//!
//! ```json
//! {"at_ms":0,"key":"conversation-7","prompt":[["system-3",120],["conversation-7/1",40]],"output":16}
//! ```
//!
//! A prompt is a list of segments, each with its name and its number of tokens. Equal names are equal
//! tokens, and a shorter segment is the beginning of a longer one of its name.

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};

/// Token ids that the embedded model has, without those that mark beginnings and ends.
const IDS: std::ops::Range<u64> = 16..4096;

/// A request of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    /// Milliseconds after the first one.
    pub(super) at_ms: u64,
    /// Its `prompt_cache_key`.
    pub(super) key: String,
    /// Names and lengths of segments.
    pub(super) prompt: Vec<(String, usize)>,
    /// Tokens of the answer.
    pub(super) output: u32,
}

impl Request {
    /// The tokens of its prompt.
    pub(super) fn tokens(&self) -> Vec<u64> {
        self.prompt.iter().flat_map(|(name, length)| segment(name, *length)).collect()
    }

    pub(super) fn length(&self) -> usize {
        self.prompt.iter().map(|(_, length)| length).sum()
    }
}

/// The tokens of a segment: draws whose seed is its name.
fn segment(name: &str, length: usize) -> impl Iterator<Item = u64> {
    let hash = |state: u64, byte| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut draw = draws(name.bytes().fold(0xcbf2_9ce4_8422_2325, hash));
    (0..length).map(move |_| IDS.start + draw(IDS.end - IDS.start))
}

/// Draws below a limit.
fn draws(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |limit| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % limit
    }
}

/// A crowd of conversations whose turns alternate.
pub(super) struct Conversations {
    pub(super) count: u64,
    /// System messages that they share.
    pub(super) systems: u64,
    pub(super) turns: u64,
}

impl Conversations {
    /// Tokens of a system message and of a conversation's first message, and what each turn adds.
    const SYSTEM: usize = 32;
    const FIRST: usize = 200;
    const QUESTION: usize = 12;
    const ANSWER: usize = 8;

    /// Tokens that are generated. The prompts have other answers, which were never generated.
    const OUTPUT: u32 = 4;

    /// Mean time between two turns, which is drawn from half of it to one and a half.
    const PAUSE_MS: u64 = 2000;

    pub(super) fn requests(&self, seed: u64) -> Vec<Request> {
        let mut draw = draws(seed);
        let mut requests = vec![];
        for number in 0..self.count {
            let key = format!("conversation-{number}");
            let mut at_ms = draw(Self::PAUSE_MS);
            let mut prompt = vec![
                (format!("system-{}", number % self.systems), Self::SYSTEM),
                (format!("{key}/0"), Self::FIRST),
            ];
            for turn in 1..=self.turns {
                requests.push(Request {
                    at_ms,
                    key: key.clone(),
                    prompt: prompt.clone(),
                    output: Self::OUTPUT,
                });
                at_ms += Self::PAUSE_MS / 2 + draw(Self::PAUSE_MS);
                prompt.push((format!("{key}/{turn}/answer"), Self::ANSWER));
                prompt.push((format!("{key}/{turn}"), Self::QUESTION));
            }
        }
        requests.sort_by_key(|request| request.at_ms);
        requests
    }
}

/// Lines of JSON.
pub(super) fn write<T: Serialize>(path: &Path, lines: &[T]) {
    let line = |line| serde_json::to_string(line).expect("JSON") + "\n";
    fs::write(path, lines.iter().map(line).collect::<String>()).expect("a file");
}

pub(super) fn read(path: &Path) -> Vec<Request> {
    let text = fs::read_to_string(path).expect("a trace");
    text.lines().map(|line| serde_json::from_str(line).expect("a request")).collect()
}

/// What the format promises.
#[test]
fn a_trace_is_read_as_it_was_written_and_equal_names_are_equal_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.jsonl");
    let line = r#"{"at_ms":5,"key":"k","prompt":[["system-3",12],["k/1",4]],"output":16}"#;
    fs::write(&path, format!("{line}\n")).expect("a file");
    let requests = read(&path);
    write(&path, &requests);
    assert_eq!(fs::read_to_string(&path).expect("a file"), format!("{line}\n"));
    let other = Request { prompt: vec![("system-3".into(), 20)], ..requests[0].clone() };
    let (tokens, longer) = (requests[0].tokens(), other.tokens());
    assert_eq!((tokens.len(), longer.len(), requests[0].length()), (16, 20, 16));
    assert_eq!(tokens[..12], longer[..12]);
    assert_ne!(tokens[12..], longer[12..16]);
}

//! Pieces of text: complete characters, and joined what the tokenizer makes of all tokens.

use std::sync::Arc;

use crate::support::{TOKENIZERS, entries, ids, json, shared_tokenizer};
use proptest::{collection::vec, prelude::*};
use serde_json::Value;
use setun_text::{StreamDecoder, Tokenizer};

/// The pieces for each generated token, and the last one.
fn stream(tokenizer: &Arc<dyn Tokenizer>, prompt: &[u32], generated: &[u32]) -> Vec<String> {
    let mut decoder = StreamDecoder::new(Arc::clone(tokenizer), prompt).expect("any ids");
    let mut pieces: Vec<String> =
        generated.iter().map(|&id| decoder.push(id).expect("any ids")).collect();
    pieces.push(decoder.finish().expect("any ids"));
    pieces
}

/// The text of prompt and generated tokens without what it has in common with the prompt's.
fn difference(tokenizer: &Arc<dyn Tokenizer>, prompt: &[u32], generated: &[u32]) -> String {
    let decode = |ids: &[u32]| tokenizer.decode(ids, true).expect("any ids");
    let (before, all) = (decode(prompt), decode(&[prompt, generated].concat()));
    let common = before.chars().zip(all.chars()).take_while(|(left, right)| left == right);
    all.chars().skip(common.count()).collect()
}

#[test]
fn gives_what_the_reference_stream_gives() {
    for folder in TOKENIZERS {
        let tokenizer = shared_tokenizer(folder);
        for case in entries(&json(&format!("golden/{folder}/golden.json"))["partial"]) {
            let pieces = stream(&tokenizer, &[], &ids(&case["ids"]));
            let chunks = entries(&case["stream_chunks"]);
            let chunks: Vec<&str> =
                chunks.iter().map(|chunk| chunk.as_str().unwrap_or("")).collect();
            assert_eq!(pieces.concat(), chunks.concat(), "{folder}");
            for count in 0..=chunks.len() {
                let (ours, theirs) = (pieces[..count].concat(), chunks[..count].concat());
                assert!(!ours.contains('\u{fffd}'), "{folder}: half a character in {ours:?}");
                // The reference shows a run of byte tokens too early, and waits with text before
                // half a character though it is certain.
                let (first, then) =
                    if folder == "tokenizer-llama3" { (&theirs, &ours) } else { (&ours, &theirs) };
                assert!(then.starts_with(first.as_str()), "{folder}: {ours:?}, {theirs:?}");
            }
        }
    }
}

#[test]
fn gives_all_of_a_text_wherever_the_prompt_ends() {
    for folder in TOKENIZERS {
        let tokenizer = shared_tokenizer(folder);
        for case in entries(&json(&format!("golden/{folder}/golden.json"))["encode"]) {
            let ids = ids(&case["ids_with_bos"]);
            for cut in 0..=ids.len() {
                let (prompt, generated) = ids.split_at(cut);
                let joined = stream(&tokenizer, prompt, generated).concat();
                assert_eq!(
                    joined,
                    difference(&tokenizer, prompt, generated),
                    "{folder} {}",
                    case["text"]
                );
            }
        }
    }
}

#[test]
fn a_character_comes_with_its_last_byte_and_a_space_with_its_word() {
    let tokenizer = shared_tokenizer("tokenizer-llama3");
    let pieces = |text| stream(&tokenizer, &[], &tokenizer.encode(text, false).expect("any text"));
    assert_eq!(pieces("😀"), ["", "", "", "😀", ""]);
    let tokenizer = shared_tokenizer("tokenizer-llama2");
    let prompt = tokenizer.encode("Hello, world", true).expect("any text");
    let comma = tokenizer.encode("Hello,", true).expect("any text").len();
    let (prompt, generated) = prompt.split_at(comma);
    assert_eq!(stream(&tokenizer, prompt, generated).concat(), " world");
}

/// Token ids of which many are single bytes: whole texts are rare, broken characters common.
fn some_ids(vocabulary: u32) -> impl Strategy<Value = Vec<u32>> {
    vec(prop_oneof![0..300_u32, 0..vocabulary, vocabulary - 14..vocabulary + 2], 0..40)
}

/// Texts with characters of one to four bytes, and without a common word.
fn some_text() -> impl Strategy<Value = String> {
    "[ -~é日😀\n▁\u{fffd}]{0,24}"
}

/// Ids of whole texts, cut and mixed with arbitrary ids.
fn mixed_ids(folder: &'static str) -> impl Strategy<Value = Vec<u32>> {
    let tokenizer = shared_tokenizer(folder);
    let vocabulary = u32::try_from(tokenizer.vocab_size()).expect("small");
    let text = some_text().prop_map(move |text| tokenizer.encode(&text, false).expect("any text"));
    vec(prop_oneof![text, some_ids(vocabulary)], 0..4).prop_map(|parts| parts.concat())
}

fn joined_pieces_are_the_difference(folder: &'static str) {
    let tokenizer = shared_tokenizer(folder);
    let config = ProptestConfig { cases: 2_000, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&(mixed_ids(folder), mixed_ids(folder)), |(prompt, generated)| {
            let pieces = stream(&tokenizer, &prompt, &generated);
            prop_assert_eq!(pieces.concat(), difference(&tokenizer, &prompt, &generated));
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{folder}: {error}"));
}

#[test]
fn byte_level_pieces_join_to_the_difference() {
    joined_pieces_are_the_difference("tokenizer-llama3");
}

#[test]
fn byte_fallback_pieces_join_to_the_difference() {
    joined_pieces_are_the_difference("tokenizer-llama2");
}

/// Counts how many ids the tokenizer was given to decode.
struct Counting(Arc<dyn Tokenizer>, std::sync::atomic::AtomicUsize);

impl Tokenizer for Counting {
    fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, setun_text::TextError> {
        self.0.encode(text, add_special)
    }
    fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, setun_text::TextError> {
        self.1.fetch_add(ids.len(), std::sync::atomic::Ordering::Relaxed);
        self.0.decode(ids, skip_special)
    }
    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }
    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.token_to_id(token)
    }
    fn id_to_token(&self, id: u32) -> Option<String> {
        self.0.id_to_token(id)
    }
}

/// How many ids are decoded for these generated ones.
fn work(tokenizer: &Arc<dyn Tokenizer>, generated: &[u32]) -> usize {
    let counting = Arc::new(Counting(Arc::clone(tokenizer), 0.into()));
    let shared: Arc<dyn Tokenizer> = counting.clone();
    stream(&shared, &[], generated);
    counting.1.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn the_work_for_a_token_does_not_grow() {
    for folder in TOKENIZERS {
        let tokenizer = shared_tokenizer(folder);
        let golden = json(&format!("golden/{folder}/golden.json"));
        let texts = entries(&golden["encode"]).iter().map(|case| ids(&case["ids"]));
        let broken = entries(&golden["partial"]).iter().flat_map(|case: &Value| {
            let bytes = ids(&case["ids"]);
            [&bytes[..bytes.len() - 1], &bytes[1..]].map(|part| part.repeat(40))
        });
        let (texts, broken): (Vec<u32>, Vec<u32>) =
            (texts.flatten().collect(), broken.flatten().collect());
        assert!(work(&tokenizer, &texts) < 12 * texts.len(), "{folder}");
        let once = work(&tokenizer, &broken);
        assert!(work(&tokenizer, &broken.repeat(4)) < 5 * once, "{folder}");
    }
}

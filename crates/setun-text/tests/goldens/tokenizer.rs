//! Ids and texts as Hugging Face's tokenizers gives them.

use crate::support::{TOKENIZERS, entries, ids, json, read, tokenizer};
use serde_json::Value;
use setun_text::{HfTokenizer, Tokenizer as _};

#[test]
fn encodes_and_decodes_as_the_reference() {
    for folder in TOKENIZERS {
        let (tokenizer, as_text) = (tokenizer(folder), tokenizer(folder).with_specials_as_text());
        let golden = json(&format!("golden/{folder}/golden.json"));
        assert_eq!(golden["vocab_size"], tokenizer.vocab_size());
        for case in entries(&golden["encode"]) {
            let text = case["text"].as_str().expect("a text");
            let encode = |add_special| tokenizer.encode(text, add_special).expect("any text");
            assert_eq!(encode(false), ids(&case["ids"]), "{folder}: {text:?}");
            assert_eq!(encode(true), ids(&case["ids_with_bos"]), "{folder}: {text:?}");
            let plain = as_text.encode(text, false).expect("any text");
            assert_eq!(plain, ids(&case["ids_specials_as_text"]), "{folder}: {text:?}");
            decodes(&tokenizer, case);
        }
        for case in entries(&golden["decode_random"]) {
            decodes(&tokenizer, case);
        }
    }
}

fn decodes(tokenizer: &setun_text::HfTokenizer, case: &Value) {
    let decode = |skip| tokenizer.decode(&ids(&case["ids"]), skip).expect("any ids");
    assert_eq!(case["decoded"], decode(false));
    assert_eq!(case["decoded_skip_special"], decode(true));
}

#[test]
fn decodes_every_part_of_a_split_character() {
    for folder in TOKENIZERS {
        let tokenizer = tokenizer(folder);
        for case in entries(&json(&format!("golden/{folder}/golden.json"))["partial"]) {
            let ids = ids(&case["ids"]);
            for cut in 0..=ids.len() {
                let decode = |part: &[u32]| tokenizer.decode(part, false).expect("any ids");
                assert_eq!(case["prefixes"][cut], decode(&ids[..cut]));
                assert_eq!(case["suffixes"][cut], decode(&ids[cut..]));
            }
        }
    }
}

#[test]
fn knows_its_vocabulary() {
    for folder in TOKENIZERS {
        let tokenizer = tokenizer(folder);
        let golden = json(&format!("golden/{folder}/golden.json"));
        for (name, id) in [("bos", "bos_id"), ("eos", "eos_id")] {
            let token = golden[name].as_str().expect("a token");
            let found = tokenizer.token_to_id(token).expect("it is in the vocabulary");
            assert_eq!(golden[id], found);
            assert_eq!(tokenizer.id_to_token(found).as_deref(), Some(token));
        }
        assert_eq!(tokenizer.token_to_id("no such token"), None);
        assert_eq!(tokenizer.id_to_token(u32::MAX), None);
        let beyond = u32::try_from(tokenizer.vocab_size()).expect("small");
        assert_eq!(tokenizer.id_to_token(beyond), None);
        assert_eq!(tokenizer.decode(&[beyond], false).expect("no text"), "");
    }
}

/// The tokenizer that the embedded story model carries.
fn story_tokenizer() -> HfTokenizer {
    let bytes = read("../../crates/setun/embedded/stories.safetensors");
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).expect("a checkpoint");
    let files = header.metadata().as_ref().expect("it carries files");
    HfTokenizer::from_bytes(files["setun.file/tokenizer.json"].as_bytes()).expect("it is valid")
}

#[test]
fn each_token_adds_its_bytes() {
    let fixtures = TOKENIZERS.map(|folder| (folder, tokenizer(folder)));
    for (name, tokenizer) in fixtures.into_iter().chain([("stories", story_tokenizer())]) {
        let begun = tokenizer.encode("a", false).expect("any text");
        let before = tokenizer.decode(&begun, false).expect("any ids");
        let (mut known, mut broken) = (0, 0);
        for id in 0..u32::try_from(tokenizer.vocab_size()).expect("small") {
            let all: Vec<u32> = begun.iter().copied().chain([id]).collect();
            let Some(bytes) = tokenizer.token_bytes(id) else {
                let skipped = tokenizer.decode(&all, true).expect("any ids");
                assert_eq!(skipped, before, "{name}: token {id} is special or no token");
                continue;
            };
            let expected = [before.as_bytes(), &bytes].concat();
            let decoded = tokenizer.decode(&all, false).expect("any ids");
            assert_eq!(decoded, String::from_utf8_lossy(&expected), "{name}: token {id}");
            known += 1;
            broken += usize::from(std::str::from_utf8(&bytes).is_err());
        }
        assert!(known + 64 > tokenizer.vocab_size() && broken >= 128, "{name}: {known}, {broken}");
        assert_eq!(tokenizer.token_bytes(u32::MAX), None);
    }
}

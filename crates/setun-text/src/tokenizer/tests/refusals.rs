//! Fields that are refused, each with its error.

use serde_json::{Value, json};

use super::{open, opened, seeds, with};
use crate::Tokenizer as _;

#[track_caller]
fn refused(file: &Value, expected: &str) {
    let error = open(file).map(drop).expect_err(expected).to_string();
    assert!(error.contains(expected), "{error}");
    assert!(error.len() < 400, "{error}");
}

#[track_caller]
fn refused_at(seed: Value, place: &str, value: impl Into<Value>, expected: &str) {
    refused(&with(seed, place, value), expected);
}

#[test]
fn decoders_that_count_back_beyond_a_token() {
    for stop in [1_u64, 2, u64::MAX] {
        let found = format!("`decoder.decoders[3].stop` of tokenizer.json is {stop}, expected 0");
        refused_at(seeds::sentence_piece(), "/decoder/decoders/3/stop", stop, &found);
    }
    let expected = "`decoder.type` of tokenizer.json is `Backwards`, expected one of BPEDecoder";
    refused_at(seeds::byte_level(), "/decoder/type", "Backwards", expected);
}

#[test]
fn maps_of_characters_that_lead_astray() {
    let place = "/normalizer/normalizers/0/precompiled_charsmap";
    let refused_map = |map: String, found: &str| {
        let found = format!("precompiled_charsmap` of tokenizer.json is {found}");
        refused_at(seeds::unigram(), place, map, &found);
    };
    refused_at(seeds::unigram(), place, Value::Null, "is none, expected a text in base64");
    refused_map("AAAA A".into(), "no base64");
    refused_map(seeds::base64(&[1]), "fewer than 4 bytes");
    refused_map(seeds::base64(&[0; 4]), "unit 0 of a trie that leads beyond");
    refused_map(seeds::base64(&[0xff; 8]), "a trie of 4294967295 bytes where 4 are left");
    refused_map(
        seeds::charsmap(&seeds::units(), "a".repeat(200).as_str()),
        "a text of more than 128",
    );
    let changed = |place: usize, unit: u32| {
        let mut units = seeds::units();
        units[place] = unit;
        seeds::charsmap(&units, "é\0")
    };
    refused_map(changed(0, 512 << 10), "unit 0 of a trie that leads beyond");
    refused_map(changed(321, 0x41 | 1 << 8 | 1024 << 10), "unit 321 of a trie that leads beyond");
    refused_map(changed(2, 1 << 31 | 1), "no text at byte 1");
    refused_map(changed(2, 1 << 31 | 4), "no text at byte 4");
    let odd = [&2048_u32.to_le_bytes()[..], &[0; 2048], b"\xff"].concat();
    refused_map(seeds::base64(&odd), "invalid utf-8");
    assert_eq!(opened(&seeds::unigram()).encode("A", false).expect("mapped"), [1, 4]);
}

#[test]
fn templates_without_their_tokens_or_text() {
    let (seed, place) = (seeds::sentence_piece, "/post_processor/single");
    let expected = "`post_processor.single[0]` of tokenizer.json is `<none>`, expected a name that";
    refused_at(seed(), "/post_processor/single/0/SpecialToken/id", "<none>", expected);
    let expected = "`post_processor.pair[0]` of tokenizer.json is `<none>`, expected a name that";
    refused_at(seed(), "/post_processor/pair/0/SpecialToken/id", "<none>", expected);
    let text = |name: &str| json!({"Sequence": {"id": name, "type_id": 0}});
    for (texts, count) in [(vec![], 0), (vec![text("A"), text("A")], 2), (vec![text("B")], 2)] {
        let expected = format!("is {count} texts, expected the text `A` once and no other");
        refused_at(seed(), place, texts, &expected);
    }
    let ids = "/post_processor/special_tokens/<s>/ids";
    let expected =
        "`post_processor` of tokenizer.json is token 999, expected ids of the vocabulary";
    refused_at(seed(), ids, vec![999], expected);
    refused_at(seed(), ids, vec![u32::MAX], "`post_processor` of tokenizer.json is token");
    refused_at(seed(), ids, vec![1; 100], "expected at most 64 tokens around the text");
    let two = json!({"type": "Sequence", "processors": [seeds::template("<s>", 1), seeds::template("<s>", 1)]});
    refused_at(seed(), "/post_processor", two, "expected one template at most");
    let disguised = with(seed(), "/post_processor/type", "ByteLevel");
    refused(&disguised, "`post_processor.type` of tokenizer.json is ByteLevel, expected Template");
    let disguised = json!({"type": "ByteLevel", "processors": [seeds::template("<no>", 1)]});
    refused_at(seed(), "/post_processor", disguised, "expected a list, in a Sequence only");
}

#[test]
fn ids_far_beyond_the_tokens() {
    let expected = "`model.vocab` of tokenizer.json is 4294967295 of `a`, expected ids below 67640";
    refused_at(seeds::sentence_piece(), "/model/vocab/a", u32::MAX, expected);
    refused_at(
        seeds::sentence_piece(),
        "/model/vocab/a",
        67_640,
        "67640 of `a`, expected ids below",
    );
    refused_at(seeds::word_level(), "/model/vocab/a", -1, "-1 of `a`, expected ids below");
    opened(&with(seeds::word_level(), "/model/vocab/ab", 60_000));
    let long = "a".repeat(5000);
    let expected = "`model.vocab` of tokenizer.json is 5000 bytes, expected at most 4096 bytes";
    refused_at(seeds::word_level(), &format!("/model/vocab/{long}"), 1, expected);
}

#[test]
fn long_prefixes() {
    let long = || "x".repeat(1 << 20);
    let expected = "is 1048576 bytes, expected at most 6";
    refused_at(seeds::sentence_piece(), "/normalizer/normalizers/0/prepend", long(), expected);
    refused_at(seeds::sentence_piece(), "/normalizer/normalizers/1/content", long(), expected);
    refused_at(seeds::sentence_piece(), "/decoder/decoders/0/content", long(), expected);
    for field in ["continuing_subword_prefix", "end_of_word_suffix"] {
        refused_at(seeds::byte_level(), &format!("/model/{field}"), long(), expected);
    }
    refused_at(seeds::word_piece(), "/model/unk_token", long(), "expected at most 256 bytes");
    let expected = "`model.merges[0]` of tokenizer.json is `b`, expected a second half that begins";
    refused_at(seeds::byte_level(), "/model/continuing_subword_prefix", "##", expected);
}

/// Of tokens that each begin the next, each letter would read all: 20 kB took 40 seconds.
#[test]
fn pieces_that_begin_each_other() {
    let pieces = |longest: usize| -> Vec<Value> {
        (1..=longest).map(|length| json!(["a".repeat(length), -1.0])).collect()
    };
    let plain = |longest| {
        let seed = with(seeds::unigram(), "/post_processor", Value::Null);
        with(seed, "/model/vocab", pieces(longest))
    };
    opened(&plain(90));
    refused(&plain(91), "expected at most 4096 bytes of tokens that begin one token");
    let long = [json!(["a".repeat(2000), -1.0])];
    let expected = "`model.vocab` of tokenizer.json is 2000 bytes, expected at most 512 bytes";
    refused(&with(plain(3), "/model/vocab", long.to_vec()), expected);
}

#[test]
fn counts_that_take_long_or_none() {
    let expected =
        "`model.max_input_chars_per_word` of tokenizer.json is 1000000, expected at most 256";
    refused_at(seeds::word_piece(), "/model/max_input_chars_per_word", 1_000_000, expected);
    let expected =
        "`pre_tokenizer.pretokenizers[4].length` of tokenizer.json is 0, expected 1 or more";
    refused_at(seeds::word_level(), "/pre_tokenizer/pretokenizers/4/length", 0, expected);
    let stages = vec![json!({"type": "NFC"}); 65];
    let expected =
        "`normalizer.normalizers[64]` of tokenizer.json is more, expected at most 64 stages";
    refused_at(seeds::sentence_piece(), "/normalizer/normalizers", stages, expected);
}

/// The crate goes by the fields where it does not know the name.
#[test]
fn stages_under_other_names() {
    let replace = json!({"type": "BertNormalizer", "pattern": {"Regex": "(a)\\1"}, "content": ""});
    let expected = "`normalizer.clean_text` of tokenizer.json is none, expected a flag";
    refused_at(seeds::word_piece(), "/normalizer", replace, expected);
    for stage in ["normalizer", "pre_tokenizer", "post_processor", "decoder"] {
        let place = format!("/{stage}");
        let expected = format!("`{stage}.type` of tokenizer.json is none, expected the name");
        refused_at(seeds::word_piece(), &place, json!({"content": ""}), &expected);
        let expected = format!("`{stage}` of tokenizer.json is 3, expected an object");
        refused_at(seeds::word_piece(), &place, 3, &expected);
    }
}

#[test]
fn added_tokens_that_cannot_be_looked_for() {
    let token = |change: fn(&mut Value)| {
        let mut token = seeds::added(1, "<s>");
        change(&mut token);
        with(seeds::sentence_piece(), "/added_tokens/1", token)
    };
    let expected = "`added_tokens[1].content` of tokenizer.json is 600 bytes, expected at most 512";
    refused(&token(|token| token["content"] = "x".repeat(600).into()), expected);
    let spaces =
        |token: &mut Value| (token["content"], token["lstrip"]) = ("\t ".into(), true.into());
    refused(
        &token(spaces),
        "`added_tokens[1]` of tokenizer.json is 2 bytes of space, expected a token",
    );
    let emptied = with(
        with(seeds::word_level(), "/added_tokens", vec![seeds::added(6, " ")]),
        "/added_tokens/0/normalized",
        true,
    );
    let expected =
        "`added_tokens[0].content` of tokenizer.json is 0 bytes, expected 1 to 512 bytes";
    refused(&emptied, expected);
    refused(&token(|token| token["special"] = 3.into()), "expected a list of tokens with");
}

#[test]
fn patterns_without_a_bound() {
    let place = "/pre_tokenizer/pretokenizers/0/pattern/Regex";
    let seed = seeds::byte_level;
    for (pattern, expected) in [
        (r"(a+)+(?!b)", "no repetition within a repetition before more, beside look-around"),
        (r"(?:(?:a|b+)c?)*(?=d)", "no repetition within a repetition before more"),
        (r"(a+){20}(?!b)", "no repetition within a repetition before more"),
        (r"(?:(?:a+)*b)*|\s+(?!\S)", "no repetition within a repetition before more"),
        (r"a*a*a*(?!b)", "at most 2 repetitions before more, beside look-around"),
        (r"\s+(?!.*x.*y)", "at most 2 repetitions before more"),
        (r"(a+)\1", "back-references to groups before, without repetitions"),
        (r"(a\1)", "back-references to groups before"),
        (r"(a)(b)\3", "back-references to groups before"),
        (r"(?<x>a)\k<x>", "no back-reference by name"),
        (r"(?=ab\K)", r"no `\K`"),
        (r"a(?(1)b|c)", "a group, a look-around or flags of `imsUu`"),
        (r"(?x) a # (", "a group, a look-around or flags of `imsUu`"),
        (r"(?:\p{L}{100}){100}", "at most 4096 elements, counts included"),
        (r"a)", "parentheses in pairs"),
    ] {
        refused_at(seed(), place, pattern, expected);
    }
    refused_at(seed(), place, "a".repeat(10_000), "is 10000 bytes, expected at most 8192 bytes");
    refused_at(seed(), place, "(", "tokenizer.json cannot be read: ");
    // Published ones, and what the same checks must let through.
    for pattern in [
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        r" ?[^(\s|[.,!?…。，、।۔،])]+",
        r"(?:[a-z]+ )+|\x{2102}{2}|[^]\p{N}]",
        r"[\(\)]|([!.])\1*",
        r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|\s*[\r\n]|\s+(?!\S)|\s+",
        r" (?!\h?\p{N})\h?(?:\p{L}\p{M}*)+|\p{N}|\s+(?!\S)|\s+",
        r"\p{Nd}{1,510}(?=(?>\p{Nd}{510})*(?:\P{Nd}|$))|\G\p{Nd}{510}",
        r"\p{N}{1,3}|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{1,2}(?!\S)|\s{1}",
        r"\d{1,3}(?=(?:\d{3})*\b)",
        r"(?=(\d{3})+(?!\d))",
        r"\A\p{Nd}{1,2}(?=\p{Nd}{3}+\z)",
    ] {
        opened(&with(seed(), place, pattern));
    }
}

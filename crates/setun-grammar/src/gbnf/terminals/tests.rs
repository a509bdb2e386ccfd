//! Grammars in large terminals beside the same in single characters.

use std::path::PathBuf;
use std::sync::Arc;

use setun_text::{HfTokenizer, TextError, Tokenizer};

use super::super::to_lark;
use crate::{Constraint, Grammar, GrammarLimits, GrammarSpec, Vocabulary};

/// Grammars as they are written, in which much may be a terminal.
const GRAMMARS: [&str; 12] = [
    // JSON, whose white space follows each part.
    include_str!("../../../tests/grammars/json.gbnf"),
    // JSON, whose white space is recursive, and between parts twice.
    r#"root ::= ws value ws
    value ::= "{" ws (pair ws ("," ws pair ws)*)? "}" | "[" ws (value ws ("," ws value ws)*)? "]" | string | number
    pair ::= string ws ":" ws value
    string ::= "\"" [^"\\]* "\"" ws
    number ::= [0-9]+ ("." [0-9]+)?
    ws ::= ([ \t\n] ws)?"#,
    r#"root ::= (sum "=" ws operand "\n")+
    sum ::= operand ([-+*/] ws operand)*
    operand ::= name | number | "(" ws sum ")" ws
    name ::= [a-z] [a-z0-9_]* ws
    number ::= [0-9]+ ws
    ws ::= [ \t\n]*"#,
    include_str!("../../../tests/grammars/code.gbnf"),
    r#"root ::= item+
    item ::= "- " [^\n]+ "\n" ("  " item)?"#,
    // Words of which some are the beginning of others, and of names.
    r#"root ::= word (" " root)? | "(" root ")"
    word ::= "in" | "int" | "integer" | name | "if" root "end"
    name ::= [a-z]+"#,
    r#"root ::= tag | text root
    tag ::= "<" name ">" root? "</" name ">"
    name ::= [a-z]{1,8}
    text ::= [^<>é]+"#,
    // Characters of which the first bytes are the same, and one that begins with the same word.
    "root ::= \"é\"+ more\nmore ::= \"è\" more | \"é.\" | \"語\"+ \"言\" root",
    "root ::= [a-m]* [k-z]+ (\"(\" root \")\")? [k-z]",
    "root ::= \"ab\"{2,3} root? \"ab\" | [ab]{3} \"c\"",
    "root ::= (\"(\" root? \")\"){0,3} [0-9]{4} \"-\" [0-9]{2}",
    "root ::= \"\" | ws root \"x\" ws\nws ::= \" \"*",
];

/// A character or a word of a vocabulary.
const WORDS: [&str; 24] = [
    "ab", "aa", "ba", "abc", "abab", "bb", "cab", "é", "éé", "è", "éa", "aé", "aab", "bba", "cc",
    "ac", "ca", "a(", "(a", ")a", "((", "))", "()", "語",
];

/// A token for each byte, some for several, and the end.
struct Words;

impl Tokenizer for Words {
    fn encode(&self, text: &str, _: bool) -> Result<Vec<u32>, TextError> {
        Ok(text.bytes().map(u32::from).collect())
    }

    fn decode(&self, ids: &[u32], _: bool) -> Result<String, TextError> {
        let bytes: Vec<u8> = ids.iter().filter_map(|&id| self.token_bytes(id)).flatten().collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn vocab_size(&self) -> usize {
        257 + WORDS.len()
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        (token == "<end>").then_some(256)
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        (id == 256).then(|| "<end>".to_owned())
    }

    fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        match u8::try_from(id) {
            Ok(byte) => Some(vec![byte]),
            Err(_) => {
                WORDS.get((id as usize).checked_sub(257)?).map(|word| word.as_bytes().to_vec())
            }
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len())]
    }
}

/// A grammar of a few rules, any of which may name any other.
fn any_grammar(random: &mut Random) -> String {
    let names = ["root", "b", "c", "d"];
    let names = &names[..=random.below(4)];
    let rule = |name: &&str| format!("{name} ::= {}\n", any_alternatives(random, names, 2));
    names.iter().map(rule).collect()
}

fn any_alternatives(random: &mut Random, names: &[&str], depth: usize) -> String {
    let mut sequences = Vec::new();
    for _ in 0..=random.below(3) {
        let mut items = Vec::new();
        for _ in 0..=random.below(4) {
            let times = random.of(&["", "", "", "", "", "", "?", "*", "+", "{2}", "{1,3}", "{2,}"]);
            items.push(any_element(random, names, depth) + times);
        }
        sequences.push(items.join(" "));
    }
    sequences.join(" | ")
}

fn any_element(random: &mut Random, names: &[&str], depth: usize) -> String {
    match random.below(10) {
        0..=3 => random
            .of(&["\"a\"", "\"b\"", "\"c\"", "\"ab\"", "\"(\"", "\")\"", "\"aé\"", "\"abc\""])
            .to_owned(),
        4..=6 => {
            random.of(&["[a]", "[ab]", "[b-c]", "[^a]", "[^()]", "[é]", "[è-ë]", "."]).to_owned()
        }
        7 if depth > 0 => format!("({})", any_alternatives(random, names, depth - 1)),
        _ => random.of(names).to_owned(),
    }
}

/// What was compared.
#[derive(Default)]
struct Compared {
    /// Grammars with large terminals, and without.
    grammars: usize,
    others: usize,
    masks: usize,
    /// Texts that came to their ends.
    ends: usize,
}

impl Compared {
    fn is_at_least(&self, grammars: usize, masks: usize, ends: usize) {
        let Self { grammars: some, others, masks: compared, ends: ended } = self;
        let what = format!("{some} grammars, {others} without, {compared} masks, {ended} ends");
        assert!(*some >= grammars && *compared >= masks && *ended >= ends, "{what}");
    }
}

/// Takes the same walks through both forms of a grammar.
fn compare(text: &str, vocabulary: &Arc<Vocabulary>, seed: u64, compared: &mut Compared) {
    let limits = GrammarLimits::default();
    let Ok(lark) = to_lark(text, &limits) else { return };
    let compiled = |lark| Grammar::new(&GrammarSpec::Lark(lark), vocabulary, &limits);
    let Some(with_terminals) = lark.with_terminals else {
        compared.others += 1;
        return;
    };
    let plain = compiled(lark.plain);
    let larger = compiled(with_terminals.clone());
    let (Ok(plain), Ok(larger)) = (&plain, &larger) else {
        let errors = (plain.err(), larger.err());
        assert!(errors.0.is_some(), "{text}: {errors:?}\n{with_terminals}");
        return;
    };
    compared.grammars += 1;
    let mut random = Random(seed);
    for _ in 0..4 {
        let what = format!("{text}\n{with_terminals}");
        walk(&what, [plain, larger].map(Constraint::new), &mut random, compared);
    }
}

fn walk(what: &str, constraints: [Constraint; 2], random: &mut Random, compared: &mut Compared) {
    let [mut plain, mut larger] = constraints;
    let mut text = Vec::new();
    for _ in 0..24 {
        let Ok(expected) = plain.mask().cloned() else { return };
        let found = larger.mask().expect(what).clone();
        let allowed: Vec<u32> = expected.iter().collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), allowed, "{what} {text:?}");
        assert_eq!(larger.is_accepting(), plain.is_accepting(), "{what} {text:?}");
        assert_eq!(larger.is_finished(), plain.is_finished(), "{what} {text:?}");
        compared.masks += 1;
        if plain.is_finished() {
            compared.ends += 1;
            return;
        }
        // Not often the end, and not always any character there is.
        let token = allowed[random.below(allowed.len())];
        let known = allowed
            .iter()
            .filter(|&&token| token > 256 || b"abc()".iter().any(|&byte| u32::from(byte) == token));
        let known: Vec<u32> = known.copied().collect();
        let token = if known.is_empty() || random.below(4) == 0 {
            token
        } else {
            known[random.below(known.len())]
        };
        plain.accept(token).expect(what);
        larger.accept(token).expect(what);
        text.push(token);
    }
}

#[test]
fn random_grammars_have_the_same_masks() {
    let vocabulary = Arc::new(Vocabulary::new(&Words, &[256]).expect("bytes"));
    let mut compared = Compared::default();
    let asked = std::env::var("SETUN_GRAMMARS").ok().and_then(|count| count.parse().ok());
    let seeds = asked.unwrap_or(250);
    for (seed, _) in (0..).zip(0..seeds) {
        compare(&any_grammar(&mut Random(seed)), &vocabulary, seed, &mut compared);
    }
    compared.is_at_least(seeds / 2, 20 * seeds, seeds / 2);
}

#[test]
fn written_grammars_have_the_same_masks() {
    let path = "../../tests/fixtures/golden/tokenizer-llama3/tokenizer.json";
    let file = std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file");
    let tokenizer = HfTokenizer::from_bytes(&file).expect("a tokenizer");
    let vocabulary = Arc::new(Vocabulary::new(&tokenizer, &[4095]).expect("it has bytes"));
    let mut compared = Compared::default();
    for text in GRAMMARS {
        compare(text, &vocabulary, 1, &mut compared);
    }
    compared.is_at_least(9, 500, 5);
}

/// What the search would take long for has no large terminals.
#[test]
fn the_search_is_bounded() {
    let with_terminals = |text: &str| {
        let lark = to_lark(text, &GrammarLimits::default()).expect("good");
        lark.with_terminals.is_some()
    };
    let choices = |count: usize, word: fn(usize) -> String| {
        let words: Vec<String> = (0..count).map(word).collect();
        format!("root ::= \"(\" root \")\" | root (\" \" | {}) root", words.join(" | "))
    };
    assert!(with_terminals(&choices(400, |word| format!("\"word {word}.\""))));
    assert!(!with_terminals(&choices(600, |word| format!("(root \"word {word}.\")"))));
    // The deterministic form has a state for each set of the last 20 characters.
    assert!(!with_terminals("root ::= [ab]* \"a\" [ab]{20} | [ab] root"));
    let kinds: String = ('\u{4e00}'..'\u{4f00}').collect();
    assert!(!with_terminals(&format!("root ::= \"(\" root \")\" | \"{kinds}\"")));
    // A class without a character is no beginning of a text.
    assert!(!with_terminals("root ::= \"ab\" root | \"ab\" [^\\x00-\\U0010ffff]"));
}

//! Damaged schemas, grammars and expressions: each is refused in words, or followed for some tokens,
//! on a thread with the stack of a browser's worker.
//!
//! `SETUN_MUTATION=123` runs one case alone.

use std::ops::Range;

use crate::{
    random::Random,
    support::{bytes, fixture},
};
use serde_json::{Value, json};
use setun_grammar::{Constraint, Grammar, GrammarError, GrammarLimits, GrammarSpec};

const STACK: usize = 1 << 20;

/// Cases of a check, and of a long one, of each kind.
const CASES: u64 = 1_000;
const LONG: u64 = 10_000;

/// Most tokens of a text.
const TOKENS: usize = 12;

/// Editions of the JSON Schema Test Suite.
const SCHEMAS: [&str; 2] = ["draft2020-12", "draft7"];

const LARK: [&str; 5] = [
    "start: (WORD \" \")+ NUMBER\nWORD: /[a-zäöü]+/\nNUMBER: /[0-9]{2,4}/",
    "%ignore /[ \\t]+/\nstart: sum\nsum: product ((\"+\" | \"-\") product)*\n\
     product: atom (\"*\" atom)*\natom: /[0-9]+/ | \"(\" sum \")\"",
    "start: \"a\"{2,5} [\"b\"] (\"c\" | \"d\"i)~3 name\nname[capture]: /x.y/s | <[1-9]>",
    "start: thought <[0]> %json {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"null\"}}}\n\
     thought[max_tokens=9]: /(.|\\n)*/",
    "start: part{\"a\"} rest\nrest::_: part{B}?\nB: \"b\" | /c{1,9}/ & /[^d]*/\n_part{x}: x \",\" x",
];

const GBNF: [&str; 4] = [
    "root ::= \"(\" root \")\" | [a-z]+ (\",\" root)?",
    "root ::= [a-c]* \"c\" | \"ab\" [^\\x00-\\x1F]{2,9}",
    "# a list\nroot ::= item{1,3}\nitem ::= \"- \" [^\\r\\n\\u0001]+ \"\\n\"",
    "root ::= ws object\nobject ::= \"{\" ws (pair (\",\" ws pair)*)? \"}\"\n\
     pair ::= \"\\\"\" [a-z]* \"\\\":\" ws (object | [0-9]+)\nws ::= ([ \\t\\n] ws)?",
];

const EXPRESSIONS: [&str; 5] = [
    "([A-Z][a-z]+ ){2,5}(\\d{4}-\\d{2}|né(e)?)[^x]*",
    "(?i:yes|no)(\\s+[\\w.]+@[a-z]+\\.(com|org))?",
    "(a|b)*?c{0,20}[^\\n]{3,}",
    "\\p{Lu}\\P{N}*[[:alpha:]&&[^q]]",
    "(?P<year>\\d{4})-(0[1-9]|1[0-2])",
];

#[test]
fn damaged_schemas_do_no_harm() {
    damage("schema", schemas, 0..CASES);
}

#[test]
fn damaged_grammars_do_no_harm() {
    damage("grammar", texts, 0..CASES);
}

#[test]
#[ignore = "10,000 cases, in the stage `crates release`"]
fn many_damaged_schemas_do_no_harm() {
    damage("schema", schemas, 0..LONG);
}

#[test]
#[ignore = "10,000 cases, in the stage `crates release`"]
fn many_damaged_grammars_do_no_harm() {
    damage("grammar", texts, 0..LONG);
}

/// Makes the specification of a case.
type Make = Box<dyn Fn(&mut Random) -> Option<GrammarSpec> + Send>;

fn damage(kind: &'static str, seeds: fn() -> Make, cases: Range<u64>) {
    let one = std::env::var("SETUN_MUTATION").ok().and_then(|case| case.parse().ok());
    let cases = one.map_or(cases, |case| case..case + 1);
    let run = move || {
        let (make, count) = (seeds(), cases.end - cases.start);
        let mut followed = 0;
        for case in cases {
            let mut random = Random::new(case, 0);
            if let Some(spec) = make(&mut random)
                && follow(&spec, &mut random, &format!("SETUN_MUTATION={case}, {kind}"))
            {
                followed += 1;
            }
        }
        assert!(count == 1 || (followed > count / 10 && followed < count), "{followed} of {count}");
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Chooses tokens until the text ends. False where the specification is refused.
fn follow(spec: &GrammarSpec, random: &mut Random, case: &str) -> bool {
    let grammar = match Grammar::new(spec, &bytes(), &GrammarLimits::default()) {
        Ok(grammar) => grammar,
        Err(error) => {
            assert!(!error.to_string().contains("panicked"), "{case}: {error}");
            return false;
        }
    };
    let mut constraint = Constraint::new(&grammar);
    for _ in 0..TOKENS {
        // What is beyond a limit is an error from then on.
        let Ok(mask) = constraint.mask() else { break };
        let token = mask.iter().nth(random.below(mask.count())).expect("a mask is never empty");
        match constraint.accept(token) {
            Ok(()) if token == 256 => break,
            Ok(()) => {}
            Err(GrammarError::TokenRefused { .. }) => panic!("{case}: {token} was allowed"),
            Err(_) => break,
        }
    }
    true
}

/// Schemas of the JSON Schema Test Suite with a value from another, or with damaged bytes.
fn schemas() -> Make {
    let cases = SCHEMAS.map(|edition| fixture(&format!("json-schema/{edition}.jsonl")));
    let text = String::from_utf8(cases.concat()).expect("UTF-8");
    let schema = |line: &str| serde_json::from_str::<Value>(line).expect("a case")["schema"].take();
    let seeds: Vec<Value> = text.lines().map(schema).collect();
    Box::new(move |random| {
        let mut schema = seeds[random.below(seeds.len())].clone();
        if random.below(4) == 0 {
            let bytes = damaged(schema.to_string().into_bytes(), random);
            return serde_json::from_slice(&bytes).ok().map(GrammarSpec::JsonSchema);
        }
        for _ in 0..=random.below(3) {
            let other = &seeds[random.below(seeds.len())];
            change(&mut schema, other, random);
        }
        Some(GrammarSpec::JsonSchema(schema))
    })
}

/// Grammars and expressions with damaged bytes.
fn texts() -> Make {
    let lark = LARK.map(|text| (text, GrammarSpec::Lark as fn(String) -> GrammarSpec));
    let gbnf = GBNF.map(|text| (text, GrammarSpec::Gbnf as fn(String) -> GrammarSpec));
    let regex = EXPRESSIONS.map(|text| (text, GrammarSpec::Regex as fn(String) -> GrammarSpec));
    let seeds = [&lark[..], &gbnf, &regex].concat();
    Box::new(move |random| {
        let (text, kind) = seeds[random.below(seeds.len())];
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            bytes = damaged(bytes, random);
        }
        Some(kind(String::from_utf8_lossy(&bytes).into_owned()))
    })
}

/// Bytes of which some are lost, turned, doubled or moved.
fn damaged(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    if bytes.is_empty() {
        return b"{".to_vec();
    }
    let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
    let end = bytes.len().min(from + 1 + random.below(30));
    match random.below(5) {
        0 => bytes.truncate(from),
        1 => bytes[from] ^= 1 << random.below(7),
        2 => drop(bytes.drain(from..end)),
        3 => bytes.swap(from, to),
        _ => {
            let run = bytes[from..end].repeat(1 + random.below(4));
            bytes.splice(to..to, run);
        }
    }
    bytes
}

/// Replaces a value of a schema by one of another schema's, one of its own, or a nasty one.
fn change(schema: &mut Value, other: &Value, random: &mut Random) {
    let place = any_place(schema, random);
    let value = match random.below(4) {
        0 => schema.pointer(&any_place(schema, random)).cloned().unwrap_or_default(),
        1 => nasty(random),
        _ => other.pointer(&any_place(other, random)).cloned().unwrap_or_default(),
    };
    *schema.pointer_mut(&place).expect("a place of the schema") = value;
}

fn any_place(value: &Value, random: &mut Random) -> String {
    let mut places = vec![];
    list_places(value, String::new(), &mut places);
    places.swap_remove(random.below(places.len()))
}

fn list_places(value: &Value, place: String, places: &mut Vec<String>) {
    let mut inside = |name: &str, value: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        list_places(value, format!("{place}/{name}"), places);
    };
    match value {
        Value::Array(list) => {
            (0..)
                .zip(list)
                .for_each(|(index, value): (usize, _)| inside(&index.to_string(), value));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, value)| inside(name, value)),
        _ => {}
    }
    places.push(place);
}

/// Values that a compiler may stumble over.
fn nasty(random: &mut Random) -> Value {
    let depth = random.below(200);
    match random.below(10) {
        0 => json!({"$ref": "#"}),
        1 => json!(u64::MAX),
        2 => json!(-1e300),
        3 => json!(0.1),
        4 => json!("(a?){30}{30}"),
        5 => json!({"pattern": "^(?=a)", "format": "email"}),
        6 => (0..depth).fold(json!(true), |inner, _| json!({"allOf": [inner]})),
        7 => json!({"multipleOf": 1e-7, "minimum": 1e9}),
        8 => json!((0..depth).map(|part| json!({"const": part})).collect::<Vec<_>>()),
        _ => json!({"minLength": 70_000, "maxLength": 3, "uniqueItems": true}),
    }
}

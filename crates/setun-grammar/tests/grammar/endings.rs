//! JSON texts come to their end within the tokens that they have, whatever a model prefers.

use std::collections::BTreeMap;

use crate::{
    random::Random,
    support::{Tokens, any, byte_level, sentence_piece},
};
use serde_json::{Map, Value, json};
use setun_grammar::{Constraint, GrammarSpec};

/// Kinds of random schemas.
const FAMILIES: [&str; 10] = [
    "objects",
    "optional properties",
    "arrays",
    "strings",
    "numbers",
    "alternatives",
    "compositions",
    "recursion",
    "open objects",
    "free JSON",
];

/// Random schemas.
struct Schemas(Random);

impl Schemas {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }

    fn name(&mut self) -> String {
        const NAMES: [&str; 8] =
            ["id", "name", "description", "created_at", "tags", "isActive", "größe", "a b"];
        format!("{}{}", NAMES[self.below(NAMES.len())], self.below(10))
    }

    fn scalar(&mut self) -> Value {
        match self.below(9) {
            0 => json!({"type": "string"}),
            1 => {
                json!({"type": "string", "minLength": self.below(4), "maxLength": 4 + self.below(60)})
            }
            2 => json!({"type": "integer"}),
            3 => json!({"type": "number", "minimum": -2.5}),
            4 => json!({"enum": ["red", "light green", 7, null]}),
            5 => json!({"type": "boolean"}),
            6 => json!({"type": "string", "format": "date-time"}),
            7 => json!({"type": "string", "pattern": "^[A-Z]{2,5}-[0-9]+$"}),
            _ => json!({"type": ["string", "null"]}),
        }
    }

    fn object(&mut self, depth: usize, required: bool) -> Value {
        let mut properties = Map::new();
        for _ in 0..=self.below(5) {
            let value = if depth > 0 && self.below(3) == 0 {
                self.object(depth - 1, required)
            } else {
                self.scalar()
            };
            properties.insert(self.name(), value);
        }
        let names: Vec<String> =
            properties.keys().filter(|_| required || self.below(3) == 0).cloned().collect();
        json!({"type": "object", "properties": properties, "required": names})
    }

    fn schema(&mut self, family: &str) -> Value {
        match family {
            "objects" => self.object(2, true),
            "optional properties" => self.object(2, false),
            "arrays" => {
                let item = if self.below(2) == 0 { self.scalar() } else { self.object(1, false) };
                let items = json!({"type": "array", "items": item, "minItems": self.below(4)});
                json!({"type": "object", "properties": {"items": items}, "required": ["items"]})
            }
            "strings" => {
                let values: Vec<Value> = (0..=self.below(4)).map(|_| self.string()).collect();
                json!({"type": "array", "prefixItems": values, "items": false, "minItems": values.len()})
            }
            "numbers" => {
                let (least, most) = (self.below(100), 100 + self.below(1_000));
                json!({"type": "array", "minItems": 1 + self.below(3), "items": {"anyOf": [
                    {"type": "integer", "minimum": least, "maximum": most},
                    {"type": "number", "exclusiveMinimum": least},
                    {"type": "number", "multipleOf": 0.25},
                ]}})
            }
            "alternatives" => {
                let kinds = ["text", "image", "tool_use"];
                let part = |random: &mut Self, kind: &str| {
                    let mut part = random.object(1, true);
                    part["properties"]["type"] = json!({"const": kind});
                    part["required"] = json!(["type"]);
                    part
                };
                let parts: Vec<Value> = kinds.iter().map(|kind| part(self, kind)).collect();
                let keyword = ["anyOf", "oneOf"][self.below(2)];
                json!({"type": "array", "items": {keyword: parts}, "minItems": self.below(2)})
            }
            "compositions" => {
                // Names of their own: two types of one property have no value.
                let own = json!({"properties": {"own": self.object(1, true)}, "required": ["own"]});
                let parts = [own, json!({"$ref": "#/$defs/base"})];
                json!({"allOf": parts, "$defs": {"base": self.object(1, false)}})
            }
            "recursion" => json!({
                "$ref": "#/$defs/node",
                "$defs": {"node": {
                    "type": "object",
                    "properties": {
                        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                        "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                        "value": self.object(1, true),
                    },
                    "required": ["value", "next"],
                }},
            }),
            "open objects" => {
                let mut object = self.object(1, true);
                let more = [json!(true), json!({}), self.scalar()];
                object["additionalProperties"] = more[self.below(3)].clone();
                object
            }
            _ => [json!({}), json!({"type": "object"}), json!({"type": "array", "minItems": 3})]
                [self.below(3)]
            .clone(),
        }
    }

    fn string(&mut self) -> Value {
        let formats = ["date", "date-time", "email", "uuid", "ipv4", "hostname", "uri", "time"];
        match self.below(3) {
            0 => json!({"type": "string", "format": formats[self.below(formats.len())]}),
            1 => json!({"type": "string", "minLength": 10 + self.below(20)}),
            _ => json!({"type": "string", "pattern": "(cat|elephant) [a-z]{3,}"}),
        }
    }
}

fn is_valid(schema: &Value, text: &[u8]) -> bool {
    let validator =
        jsonschema::options().should_validate_formats(true).build(schema).expect("a schema");
    serde_json::from_slice(text).is_ok_and(|value| validator.is_valid(&value))
}

/// Numbers of texts by family, at twice the tokens of the shortest one: all, the valid ones that were led
/// to their ends, and the valid ones with open objects that were not.
fn measure(count: u64) -> BTreeMap<&'static str, [usize; 3]> {
    let all = [Tokens::new(byte_level()), Tokens::new(sentence_piece())];
    let mut found = BTreeMap::new();
    for seed in 0..count {
        let family = FAMILIES[usize::try_from(seed).expect("a few") % FAMILIES.len()];
        let tokens = &all[usize::from(seed % 20 >= 10)];
        let schema = Schemas(Random::new(seed, 7)).schema(family);
        let spec = GrammarSpec::JsonSchema(schema.clone());
        let grammar = tokens.grammar(&spec).unwrap_or_else(|error| panic!("{schema}: {error}"));
        let end = Constraint::new(&grammar).shortest_end().expect("it has an end");
        let (shortest, _) = tokens.write(&grammar, 0, end + 1, true);
        let text = String::from_utf8(tokens.bytes(&shortest)).expect("UTF-8");
        assert!(is_valid(&schema, text.as_bytes()), "{schema}: {text}");
        let length = tokens.tokenizer.encode(&text, false).expect("tokens").len() + 1;
        let text = tokens.bytes(&tokens.write(&grammar, seed, 2 * length, true).0);
        let after = is_valid(&schema, &text);
        if !after {
            eprintln!("{family}: {schema}: {}", String::from_utf8_lossy(&text));
        }
        let open = tokens.grammar(&spec.with_open_objects()).expect("it is supported");
        let text = tokens.bytes(&tokens.write(&open, seed, 2 * length, false).0);
        let before = is_valid(&schema, &text);
        let row: &mut [usize; 3] = found.entry(family).or_default();
        *row = [row[0] + 1, row[1] + usize::from(before), row[2] + usize::from(after)];
    }
    found
}

fn check(count: u64) {
    let found = measure(count);
    let mut all = [0; 3];
    for (family, row) in &found {
        eprintln!("{family}: {} of {} before, {} now", row[1], row[0], row[2]);
        all = [0, 1, 2].map(|place| all[place] + row[place]);
    }
    eprintln!("all: {} of {} before, {} now", all[1], all[0], all[2]);
    assert!(all[2] * 100 >= all[0] * 99, "{} of {}", all[2], all[0]);
}

#[test]
fn texts_end_within_twice_their_shortest_length() {
    check(100);
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_texts_end_within_twice_their_shortest_length() {
    check(1_000);
}

/// The limit counts tokens that are taken, and those that are taken back.
#[test]
fn the_limit_follows_the_text() {
    let tokens = Tokens::new(byte_level());
    let grammar = tokens.grammar(&GrammarSpec::JsonObject).expect("it is supported");
    for seed in 0..20 {
        let mut constraint = Constraint::new(&grammar);
        constraint.set_tokens_left(30);
        let mut masks = Vec::new();
        for index in 0..29 {
            let mask = constraint.mask().expect("a mask").clone();
            let token = any(&mask, seed, index);
            constraint.accept(token).expect("the mask has it");
            masks.push((mask, token));
            if constraint.is_finished() {
                break;
            }
        }
        let taken = masks.len();
        constraint.rollback(taken).expect("they were taken");
        for (mask, token) in masks {
            assert_eq!(constraint.clone().mask().expect("a mask"), &mask);
            constraint.accept(token).expect("as before");
        }
        assert!(constraint.is_accepting().expect("it did not fail"), "{seed}");
    }
}

/// Free values lie in each other no deeper than readers go.
#[test]
fn free_values_have_a_depth() {
    let grammar = crate::support::over_bytes(&GrammarSpec::JsonSchema(json!({}))).expect("JSON");
    let mut constraint = Constraint::new(&grammar);
    let mut depth = 0;
    while constraint.mask().expect("a mask").contains(u32::from(b'[')) {
        constraint.accept(u32::from(b'[')).expect("the mask has it");
        depth += 1;
    }
    assert_eq!(depth, 100);
    assert!(constraint.mask().expect("a mask").contains(u32::from(b']')));
}

/// A schema whose shortest text is too long is followed as it would be without a limit.
#[test]
fn what_cannot_end_goes_on() {
    let tokens = Tokens::new(byte_level());
    let schema = json!({"type": "string", "minLength": 50});
    let grammar = tokens.grammar(&GrammarSpec::JsonSchema(schema)).expect("it is supported");
    let (mut led, mut free) = (Constraint::new(&grammar), Constraint::new(&grammar));
    led.set_tokens_left(2);
    assert_eq!(led.mask(), free.mask());
}

//! Tools whose schemas cannot be applied as a whole, and tools beside a response format.

use serde_json::{Map, Value, json};
use setun_grammar::{Grammar, GrammarSpec, ToolGrammar};
use setun_text::{Tool, ToolCall, ToolCallReader, ToolChoice, ToolFormat};

use crate::{
    support::{accepts, over_bytes},
    tools::{FORMATS, spec, tool, tools},
};

/// A grammar of one tool, of which a call has to come, and what it is not held to.
fn freed(parameters: &Value) -> (Grammar, Vec<String>) {
    let tools = vec![Tool::new("g"), tool("f", parameters)];
    let choice = ToolChoice::Function("f".to_owned());
    let format = ToolFormat::LLAMA;
    let spec =
        GrammarSpec::Tools(ToolGrammar { tools, format, choice, parallel: false, text: None });
    let grammar = over_bytes(&spec).expect("it can be followed");
    assert!(grammar.notes().iter().all(|note| (note.tool, &*note.name) == (1, "f")));
    let notes = grammar.notes().iter().map(ToString::to_string).collect();
    (grammar, notes)
}

fn call(arguments: &str) -> String {
    format!("{{\"name\": \"f\", \"parameters\": {arguments}}}")
}

/// A keyword that cannot be applied leaves the other keywords of its schema in force.
#[test]
fn a_keyword_that_cannot_be_applied_leaves_its_part_free() {
    let with = |schema: Value| {
        json!({"properties": {"a": schema, "b": {"type": "integer"}}, "required": ["b"],
            "additionalProperties": false})
    };
    for (schema, words, taken, refused) in [
        (
            json!({"type": "string", "pattern": "(?!a)b", "maxLength": 2}),
            "look-around",
            "\"aa\"",
            "\"aaa\"",
        ),
        (
            json!({"type": "array", "items": {"type": "null"}, "uniqueItems": true}),
            "uniqueItems",
            "[null, null]",
            "[1]",
        ),
        (json!({"not": {"type": "null"}, "type": ["null", "boolean"]}), "`not`", "null", "1"),
        (json!({"type": "integer", "minimum": i64::MIN, "maximum": 3}), "minimum", "-7", "4"),
        (json!({"type": "string", "if": {}, "then": {}, "else": false}), "`if`", "\"\"", "1"),
        (
            json!({"type": "object", "dependentRequired": {"x": ["y"]}, "maxProperties": 0}),
            "dependentRequired",
            "{}",
            "[]",
        ),
        (json!({"type": "string", "required": true}), "required", "\"c\"", "3"),
        (json!({"type": "any"}), "`type`", "{\"x\": [1]}", "x"),
        (json!(3), "#/properties/a is 3", "[null]", "x"),
        (json!({"$ref": "#named"}), "anchors", "{\"x\": [1]}", "x"),
        (json!({"const": "\u{1}", "type": "string"}), "control characters", "\"c\"", "1"),
        (
            json!({"type": "object", "patternProperties": {"^(?=a)": {}}, "additionalProperties": false}),
            "patternProperties",
            "{\"z\": 1}",
            "[]",
        ),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 2}]}),
            "oneOf",
            "\"c\"",
            "1",
        ),
    ] {
        let (grammar, notes) = freed(&with(schema.clone()));
        assert!(notes.iter().any(|note| note.contains(words)), "{notes:?}");
        let arguments = |value: &str| call(&format!("{{\"a\": {value}, \"b\": 1}}"));
        assert!(accepts(&grammar, &arguments(taken)), "{schema}: {taken}");
        assert!(!accepts(&grammar, &arguments(refused)), "{schema}: {refused}");
        assert!(!accepts(&grammar, &call("{\"a\": null, \"b\": \"c\"}")), "{schema}");
    }
    assert_eq!(freed(&with(json!({"type": "string", "format": "uint32"}))).1, [""; 0]);
}

/// A schema that cannot be compiled at all allows any object.
#[test]
fn a_schema_beyond_the_bounds_is_left_free_as_a_whole() {
    let nested =
        |levels| (0..levels).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
    let wide: Map<_, _> = (0..2_000).map(|name| (name.to_string(), json!({}))).collect();
    let pattern = format!("^{}$", "a?".repeat(720));
    let large = json!({"properties": {"a": {"type": "string", "pattern": pattern}}});
    let unsatisfiable = json!({"properties": {"a": {"type": "string", "maxLength": 1, "minLength": 2}}, "required": ["a"]});
    for schema in [nested(200), json!({"properties": wide}), large, unsatisfiable] {
        let (grammar, notes) = freed(&schema);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("parameters of the tool `f`: "), "{notes:?}");
        assert!(accepts(&grammar, &call("{\"x\": {\"y\": [1]}}")));
        assert!(!accepts(&grammar, &call("[]")));
    }
}

/// An answer is calls, or a text of the format.
#[test]
fn an_answer_beside_tools_may_have_a_format() {
    let document = GrammarSpec::JsonSchema(json!({"type": "object", "properties": {
        "name": {"type": "string", "maxLength": 5}, "n": {"type": "integer"}}, "additionalProperties": false}));
    let gbnf = GrammarSpec::Gbnf("root ::= \"yes\" | \"<no\"".to_owned());
    let texts: [(GrammarSpec, &[&str], &[&str]); 6] = [
        (
            document.clone(),
            &["{\"name\": \"get\"}", "{\"name\":\"a\",\"n\":3}", "{\"n\": -1}", "{}"],
            &["", "{\"x\": 1}", "yes"],
        ),
        (GrammarSpec::JsonObject, &["{\"name\": {}}", "{\"a\": [1]}"], &["", "[]"]),
        (
            GrammarSpec::Choice(vec!["yes".to_owned(), "no".to_owned()]),
            &["yes", "no"],
            &["", "y", "maybe"],
        ),
        (GrammarSpec::Regex("a+".to_owned()), &["a", "aaa"], &["", "b"]),
        (GrammarSpec::Lark("start: X \"b\"\nX: \"a\"+".to_owned()), &["ab", "aab"], &["a"]),
        (gbnf, &["yes", "<no"], &["<yes"]),
    ];
    for format in FORMATS {
        let ToolFormat { marker, opening, middle, after, closing, .. } = format;
        let call =
            |arguments: &str| format!("{marker}{opening}get{middle}{arguments}{after}{closing}");
        let calls = [call("{\"city\": \"a\", \"unit\": \"C\"}"), call("{\"city\": 3}")];
        for (text, taken, refused) in &texts {
            let spec = |choice| {
                let text = Some(Box::new(text.clone()));
                GrammarSpec::Tools(ToolGrammar {
                    tools: tools(),
                    format,
                    choice,
                    parallel: true,
                    text,
                })
            };
            let grammar = over_bytes(&spec(ToolChoice::Auto)).expect("a grammar");
            let only = over_bytes(&spec(ToolChoice::Required)).expect("a grammar");
            for text in *taken {
                assert!(accepts(&grammar, text), "{}: {text}", format.name);
                assert!(!accepts(&only, text), "{}: {text}", format.name);
                let mut reader = ToolCallReader::new(format, false, &[], [0, 0])
                    .beside_format(["get", "get.x"].into_iter());
                let step = reader.push(0, text);
                assert_eq!(
                    (step.text + &reader.finish(), step.calls),
                    ((*text).to_owned(), vec![])
                );
            }
            for text in *refused {
                assert!(!accepts(&grammar, text), "{}: {text}", format.name);
            }
            for grammar in [&grammar, &only] {
                assert!(accepts(grammar, &calls[0]), "{}: {}", format.name, calls[0]);
                // Llama's calls are JSON objects, of which that format takes any.
                let is_any = format.at_start && *text == GrammarSpec::JsonObject;
                let is_taken = accepts(grammar, &calls[1]);
                assert!(!is_taken || is_any, "{}: {}", format.name, calls[1]);
            }
            assert!(!accepts(&grammar, &format!("So: {}", calls[0])), "{}", format.name);
            let mut reader = ToolCallReader::new(format, false, &[], [0, 0])
                .beside_format(["get", "get.x"].into_iter());
            let mut joined = vec![];
            for piece in calls[0].split_inclusive(' ') {
                let step = reader.push(0, piece);
                assert_eq!(step.text, "");
                step.calls.iter().for_each(|delta| ToolCall::join(&mut joined, delta));
            }
            assert_eq!(joined[0].name, "get");
            assert_eq!(joined[0].arguments, "{\"city\": \"a\", \"unit\": \"C\"}");
        }
    }
    let nested = GrammarSpec::Tools(ToolGrammar {
        tools: tools(),
        format: ToolFormat::HERMES,
        choice: ToolChoice::Auto,
        parallel: true,
        text: Some(Box::new(spec(ToolFormat::HERMES, ToolChoice::Auto, true))),
    });
    let error = over_bytes(&nested).map(drop).expect_err("it is refused").to_string();
    assert!(error.contains("tools are no format"), "{error}");
}

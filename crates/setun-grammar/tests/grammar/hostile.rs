//! Specifications that a stranger writes to take stack, time or memory. Each is refused by a bound
//! with its name, on a thread with the stack of a browser's worker.

use std::fmt::Write as _;
use std::time::Duration;

use crate::support::{Tokens, byte_level, bytes, over_bytes};
use serde_json::{Map, Value, json};
use setun_grammar::{Grammar, GrammarError, GrammarLimits, GrammarSpec, Interrupt};

const STACK: usize = 1 << 20;

/// What compiling gives, on a small stack.
fn compiled(spec: GrammarSpec) -> Result<Grammar, GrammarError> {
    let thread = std::thread::Builder::new().stack_size(STACK);
    let thread = thread.spawn(move || over_bytes(&spec)).expect("a thread");
    thread.join().expect("it does not panic")
}

/// Each is refused as too complex, with these words.
fn are_refused<const N: usize>(cases: [(&str, GrammarSpec, &str); N]) {
    for (name, spec, reason) in cases {
        let error = compiled(spec).map(drop).expect_err(name);
        assert!(matches!(error, GrammarError::TooComplex { .. }), "{name}: {error}");
        let message = format!("the grammar is too complex: {reason}");
        assert!(error.to_string().starts_with(&message), "{name}: {error}, expected {message}");
    }
}

fn lark(text: impl Into<String>) -> GrammarSpec {
    GrammarSpec::Lark(text.into())
}

fn gbnf(text: impl Into<String>) -> GrammarSpec {
    GrammarSpec::Gbnf(text.into())
}

fn regex(text: impl Into<String>) -> GrammarSpec {
    GrammarSpec::Regex(text.into())
}

/// `links` definitions, each of which makes a schema of the next one's reference.
fn references(links: usize, wrap: impl Fn(Value) -> Value) -> GrammarSpec {
    let reference = |link| json!({"$ref": format!("#/$defs/d{link}")});
    let mut definitions: Map<String, Value> =
        (0..links).map(|link| (format!("d{link}"), wrap(reference(link + 1)))).collect();
    definitions.insert(format!("d{links}"), json!({"type": "null"}));
    GrammarSpec::JsonSchema(json!({"$ref": "#/$defs/d0", "$defs": definitions}))
}

/// A schema in a schema, `levels` deep.
fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> GrammarSpec {
    GrammarSpec::JsonSchema((0..levels).fold(json!({"type": "null"}), |inner, _| wrap(inner)))
}

/// A chain of rules, each of which names the next.
fn chain(rules: usize, rule: impl Fn(usize) -> String) -> String {
    (0..rules).fold(String::new(), |mut text, index| {
        let _ = writeln!(text, "{}", rule(index));
        text
    })
}

#[test]
fn chains_are_bounded() {
    let schemas = "schemas and references in each other: expected at most 128, found 129";
    let rules = "rules, terminals and groups in each other: expected at most 128, found ";
    let lark_chain = |name: &str| {
        let rule = |index| format!("{name}{index}: \"a\" {name}{}", index + 1);
        format!("start: {name}0\n{}{name}3000: \"b\"\n", chain(3000, rule))
    };
    let gbnf_chain = |last: &str| {
        let rule = |index| format!("r{index} ::= \"a\" r{}", index + 1);
        format!("root ::= r0\n{}r3000 ::= {last}\n", chain(3000, rule))
    };
    are_refused([
        ("references", references(3000, |next| next), schemas),
        ("items", references(3000, |next| json!({"type": "array", "items": next})), schemas),
        ("properties", references(3000, |next| json!({"properties": {"a": next}})), schemas),
        ("alternatives", references(3000, |next| json!({"anyOf": [next, true]})), schemas),
        ("parts", references(3000, |next| json!({"allOf": [next]})), schemas),
        ("rules", lark(lark_chain("r")), rules),
        ("terminals", lark(lark_chain("R")), rules),
        ("GBNF terminals", gbnf(gbnf_chain("\"b\"")), rules),
        ("GBNF rules", gbnf(gbnf_chain("\"b\" r0?")), rules),
    ]);
}

#[test]
fn chains_within_the_bound_compile() {
    let rule = |index| format!("r{index}: \"a\" r{}", index + 1);
    let rules = format!("start: r0\n{}r126: \"b\"\n", chain(126, rule));
    let upper = rules.to_uppercase().replace("START", "start").replace("\"A\"", "\"a\"");
    for (name, spec) in [
        ("references", references(126, |next| next)),
        ("properties", references(62, |next| json!({"properties": {"a": next}}))),
        ("parts", references(62, |next| json!({"allOf": [next]}))),
        ("nested items", nested(127, |inner| json!({"items": inner}))),
        ("nested alternatives", nested(127, |inner| json!({"anyOf": [inner, {"type": "array"}]}))),
        ("nested parts", nested(127, |inner| json!({"allOf": [inner, {"items": true}]}))),
        ("rules", lark(rules)),
        ("terminals", lark(upper)),
    ] {
        compiled(spec).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn nesting_is_bounded() {
    let schemas = "schemas and references in each other: expected at most 128, found 129";
    let values = "JSON values in each other: expected at most 512, found 513";
    let groups = "groups in each other: expected at most 28, found 29";
    let pairs = |open: &str, inner: &str, close: &str, depth| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    are_refused([
        ("allOf", nested(140, |inner| json!({"allOf": [inner]})), schemas),
        ("items", nested(140, |inner| json!({"items": inner})), schemas),
        ("anyOf", nested(140, |inner| json!({"anyOf": [inner, true]})), schemas),
        ("properties", nested(140, |inner| json!({"properties": {"a": inner}})), schemas),
        ("deeper than JSON", nested(300, |inner| json!({"allOf": [inner]})), values),
        (
            "constant",
            GrammarSpec::JsonSchema(
                json!({"const": (0..140).fold(json!(1), |inner, _| json!([inner]))}),
            ),
            schemas,
        ),
        ("Lark", lark(format!("start: {}", pairs("(", "\"a\"", ")", 3000))), groups),
        ("Lark options", lark(format!("start: {}", pairs("[", "\"a\"", "]", 3000))), groups),
        ("Lark templates", lark(format!("start: {}", pairs("a{", "\"a\"", "}", 3000))), groups),
        (
            "Lark conditions",
            lark(format!("start: a::0x0\na::_: \"x\" %if {}", pairs("not(", "true", ")", 3000))),
            groups,
        ),
        ("GBNF", gbnf(format!("root ::= {}", pairs("(", "\"a\"", ")?", 3000))), groups),
        (
            "expression",
            regex(pairs("(", "a", ")", 3000)),
            "groups in each other: expected at most 250, found 3000",
        ),
    ]);
}

/// Each property of an object is compiled inside of the one before.
#[test]
fn properties_are_bounded() {
    let object = |names: std::ops::Range<usize>| {
        let properties = names.map(|name| (format!("p{name}"), json!({"type": "null"})));
        json!({"properties": properties.collect::<Map<_, _>>()})
    };
    let schema = GrammarSpec::JsonSchema;
    let required: Vec<String> = (0..1001).map(|name| format!("p{name}")).collect();
    let mut counted = object(0..301);
    counted["maxProperties"] = json!(1);
    let constant: Map<String, Value> =
        (0..1001).map(|name| (format!("p{name}"), json!(1))).collect();
    compiled(schema(object(0..1000))).expect("as many as there may be");
    let properties = "properties of an object: expected at most 1000, found ";
    are_refused([
        ("properties", schema(object(0..1001)), properties),
        ("required", schema(json!({"type": "object", "required": required})), properties),
        ("parts", schema(json!({"allOf": [object(0..600), object(600..1200)]})), properties),
        ("constant", schema(json!({"const": constant})), properties),
        ("counted", schema(counted), "properties of an object: expected at most 300, found 301"),
    ]);
}

/// The parser compares expressions with each other, and intersects them.
#[test]
fn expressions_of_schemas_are_bounded() {
    let schema = GrammarSpec::JsonSchema;
    let patterns: Map<String, Value> =
        (0..500).map(|index| (format!("^p{index}$"), json!({"type": "null"}))).collect();
    let few: Map<String, Value> = patterns.clone().into_iter().take(40).collect();
    compiled(schema(json!({"patternProperties": few}))).expect("few enough");
    let overlapping: String =
        ('b'..='u').map(|last| format!("[a-{last}]x|")).collect::<Vec<_>>().concat() + "y";
    let part = |index: usize| json!({"pattern": format!("^({overlapping}|{index})*$")});
    let parts: Vec<Value> = (0..10).map(part).collect();
    are_refused([
        (
            "property expressions",
            schema(json!({"patternProperties": patterns})),
            "pairs of expressions in `patternProperties`: expected at most 1000, found 124750",
        ),
        (
            "intersected expressions",
            schema(json!({"type": "string", "allOf": parts})),
            "combinations of classes in intersected expressions: expected at most 1000000, found ",
        ),
        (
            "optional parts",
            schema(json!({"type": "string", "maxLength": 9, "pattern": "a?".repeat(5_000)})),
            "optional parts in sequence, squared,: expected at most 250000, found ",
        ),
        (
            "classes",
            schema(json!({"type": "string", "pattern": r"\p{L}".repeat(2_001)})),
            "classes of letters, digits and spaces: expected at most 2000, found 2001",
        ),
    ]);
}

#[test]
fn automata_are_bounded() {
    let optional = "optional parts in sequence, squared,: expected at most 250000, found ";
    let long = "bytes of the regular expression: expected at most 65536, found ";
    let hard = "X: /(.|\\n)*a(.|\\n){30}/\nY: /((.|\\n)*b(.|\\n){30}|(.|\\n)*c(.|\\n){29})/";
    are_refused([
        ("optional characters", regex("a?".repeat(20_000)), optional),
        ("optional groups", regex("(ab)*".repeat(2_000)), optional),
        ("a long expression", regex("a".repeat(70_000)), long),
        ("optional terminals", lark(format!("start: A\nA: {}", "\"a\"? ".repeat(5_000))), optional),
        ("optional texts", gbnf(format!("root ::= {}", "\"a\"? ".repeat(5_000))), optional),
        (
            "a first byte",
            lark(format!("start: \"a\" | T\nT: \"z\" | \"b\" (X & Y & ~X)\n{hard}")),
            "",
        ),
    ]);
}

/// What fails before the first token fails when it is compiled.
#[test]
fn the_first_mask_is_a_part_of_the_compilation() {
    let tokens = Tokens::new(byte_level());
    let spec = GrammarSpec::Regex("([a-z]{3,9} |the [a-m]+)*".to_owned());
    let compile = |limits| Grammar::new(&spec, &tokens.vocabulary, &limits).map(drop);
    compile(GrammarLimits::default()).expect("an expression");
    let error = compile(GrammarLimits { mask_work: 1, ..GrammarLimits::default() });
    let error = error.expect_err("too little work");
    assert!(matches!(error, GrammarError::TooComplex { .. }), "{error}");
}

#[test]
fn repetitions_are_cheap_or_refused() {
    compiled(regex("(a{0,100000}){0,100000}b{3,100000}")).expect("a few expressions");
    compiled(gbnf("root ::= \"a\"{0,100000} [b-c]{99999}")).expect("one terminal");
    compiled(gbnf("root ::= \"a\"{0,100000} (\"(\" root \")\"){0,3}")).expect("few rules");
    let length = json!({"type": "string", "minLength": 90_000, "maxLength": 100_000});
    compiled(GrammarSpec::JsonSchema(length)).expect("a few expressions");
}

#[test]
fn texts_are_bounded() {
    let large = "x".repeat(1 << 20);
    let bytes = ": expected at most 1048576, found ";
    are_refused([
        ("expression", regex(large.clone() + "x"), &format!("bytes of the text{bytes}1048577")),
        ("Lark", lark(large.clone() + "x"), &format!("bytes of the text{bytes}1048577")),
        ("GBNF", gbnf(large.clone() + "x"), &format!("bytes of the text{bytes}1048577")),
        (
            "choices",
            GrammarSpec::Choice(vec![large.clone(); 2]),
            &format!("bytes of the choices{bytes}"),
        ),
        (
            "schema",
            GrammarSpec::JsonSchema(json!({"const": large})),
            &format!("bytes of the schema{bytes}"),
        ),
        (
            "GBNF, written out",
            gbnf(format!("root ::= \"(\" root \")\" | \"{}\"", "a".repeat(300_000))),
            &format!("bytes of the grammar, written out{bytes}"),
        ),
    ]);
    let choices = (0..20_000).map(|index| format!("the choice of number {index}")).collect();
    compiled(GrammarSpec::Choice(choices)).expect("one automaton");
}

#[test]
fn names_are_bounded() {
    let rules = chain(10_001, |index| format!("r{index}: \"a\""));
    let gbnf_rules = chain(10_001, |index| format!("r{index} ::= \"a\""));
    let values: Vec<Value> = (0..10_001).map(|value| json!([value])).collect();
    are_refused([
        ("Lark", lark(rules), "rules and terminals: expected at most 10000, found 10001"),
        ("GBNF", gbnf(gbnf_rules), "rules: expected at most 10000, found 10001"),
        (
            "values",
            GrammarSpec::JsonSchema(json!({"enum": values})),
            "different names and values of a schema: expected at most 10000, found 10001",
        ),
    ]);
}

/// A rule of many parts was refused late, by the number of its symbols.
#[test]
fn parts_of_rules_are_bounded() {
    let of_rules = "parts of rules: expected at most 30000, found 30001";
    let of_all = "parts of rules and terminals: expected at most 100000, found 100001";
    are_refused([
        ("texts", lark(format!("start: {}", "\"a\" ".repeat(30_000))), of_rules),
        ("names", lark(format!("start: {}\na: \"a\"", "a ".repeat(30_000))), of_rules),
        ("alternatives", lark(format!("start: {}\"b\"", "\"a\"|".repeat(15_000))), of_rules),
        ("optional parts", lark(format!("start: {}", "(\"a\")? ".repeat(7_500))), of_rules),
        ("special tokens", lark(format!("start: {}", "<a>".repeat(30_000))), of_rules),
        ("terminals", lark(format!("start: A\nA: {}", "\"a\" ".repeat(100_000))), of_all),
    ]);
    compiled(lark(format!("start: {}", "\"a\" ".repeat(29_999)))).expect("few enough");
}

/// Rules that name each other were searched in cubic time.
#[test]
fn many_rules_are_searched_once() {
    let rule = |index: usize| format!("r{index} ::= \"a\" | r{}", (index + 1) % 3500);
    let ring = format!("root ::= r0\n{}", chain(3500, rule));
    are_refused([("ring", gbnf(ring), "rules, terminals and groups in each other: ")]);
    let star = chain(3500, |index| format!("r{index} ::= [a-z]{{{index},3600}}"));
    let names = (0..3500).map(|index| format!("r{index} | ")).collect::<Vec<_>>().concat();
    let error = compiled(gbnf(format!("root ::= {names} \"b\"\n{star}"))).map(drop);
    assert!(matches!(error, Ok(()) | Err(GrammarError::TooComplex { .. })), "{error:?}");
}

#[test]
fn a_compilation_is_cancelled_and_ends_at_a_deadline() {
    let spec = GrammarSpec::Regex("a+".to_owned());
    let (vocabulary, limits) = (bytes(), GrammarLimits::default());
    let compile = |interrupt: &Interrupt| Grammar::compile(&spec, &vocabulary, &limits, interrupt);
    let interrupt = Interrupt::new().within(Duration::from_hours(1));
    compile(&interrupt).expect("in time");
    interrupt.clone().cancel();
    let error = compile(&interrupt).map(drop).expect_err("cancelled");
    assert_eq!(error, GrammarError::Cancelled);
    assert_eq!(error.to_string(), "the compilation of the grammar was cancelled");
    let late = Interrupt::new().within(Duration::ZERO);
    let error = compile(&late).map(drop).expect_err("too late").to_string();
    assert_eq!(
        error,
        "the grammar is not compiled after 0ns, the time given: expected a simpler one"
    );
}

use serde_json::json;

use super::*;

fn read(list: &Value) -> Result<Vec<Tool>, String> {
    Tool::from_json(list.as_array().expect("a list").clone()).map_err(|error| error.to_string())
}

fn named(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name}})
}

#[test]
fn tools_are_read_and_written_as_chat_apis_have_them() {
    let parameters = json!({"type": "object", "properties": {"b": {}, "a": {}}});
    let list = json!([
        {"function": {"strict": true, "parameters": parameters, "name": "x.y", "description": "Z"}, "type": "function"},
        named("none"),
    ]);
    let tools = read(&list).expect("tools");
    let written = json!({"type": "function", "function": {"name": "x.y", "description": "Z", "parameters": parameters}});
    assert_eq!(tools[0].to_json().to_string(), written.to_string());
    let empty = json!({"type": "object", "properties": {}});
    assert_eq!(tools[1].to_json()["function"], json!({"name": "none", "parameters": empty}));
    let built =
        Tool::new("x.y").description("Z").parameters(parameters.as_object().unwrap().clone());
    assert_eq!(tools[0], built.strict(true));
    assert!(!tools[1].strict);
}

#[test]
fn faults_name_the_tool_and_what_is_wrong() {
    let long = "a".repeat(129);
    let function = |function: Value| json!({"type": "function", "function": function});
    for (tool, fault) in [
        (json!({}), "type: expected \"function\", found nothing"),
        (json!({"type": "web_search"}), "type: expected \"function\", found \"web_search\""),
        (json!("a"), "type: expected \"function\", found nothing"),
        (json!({"type": "function"}), "function: expected an object, found nothing"),
        (function(json!({"name": 3})), "function.name: expected a string, found 3"),
        (named(""), "function.name: expected 1 to 128 of A-Z a-z 0-9 _ - . : /, found \"\""),
        (named("a b"), "function.name: expected 1 to 128 of A-Z a-z 0-9 _ - . : /, found \"a b\""),
        (
            named("\"}]"),
            "function.name: expected 1 to 128 of A-Z a-z 0-9 _ - . : /, found \"\\\"}]\"",
        ),
        (named("f"), "function.name: expected a name of its own, found `f` twice"),
        (
            function(json!({"name": "g", "parameters": [1]})),
            "function.parameters: expected a JSON Schema object, found a list",
        ),
        (
            function(json!({"name": "g", "description": {}})),
            "function.description: expected a string, found an object",
        ),
    ] {
        let found = read(&json!([named("f"), tool])).expect_err(fault);
        assert_eq!(found, format!("tools[1].{fault}"));
    }
    let found = read(&json!([named(&long)])).expect_err("too long");
    assert!(found.ends_with(&format!("found \"{}", "a".repeat(59))), "{found}");
    let many: Vec<_> = (0..3_000).map(|tool| named(&format!("f{tool}"))).collect();
    let found = read(&many.into()).expect_err("too many");
    assert_eq!(found, "tools[128].type: expected no more tools, found 3000");
}

#[test]
fn a_choice_needs_its_tool() {
    let tools = [Tool::new("f"), Tool::new("g")];
    let choice = |value: Value| ToolChoice::from_json(&value);
    assert_eq!(choice(json!("auto")), Some(ToolChoice::Auto));
    assert_eq!(choice(json!("any")), None);
    assert_eq!(choice(json!({"type": "function"})), None);
    let named = choice(json!({"type": "function", "function": {"name": "g"}})).expect("a choice");
    assert_eq!(named.offered(&tools).expect("it is there"), tools);
    assert_eq!(ToolChoice::None.offered(&tools).expect("none"), []);
    let error = named.offered(&tools[..1]).expect_err("it is not there").to_string();
    assert_eq!(error, "the tool choice `g` is no tool of the request");
    ToolChoice::Required.offered(&[]).expect_err("there are no tools");
}

#[test]
fn a_request_is_read_from_its_text() {
    let text =
        json!({"tools": [named("f")], "toolChoice": "required", "format": "llama"}).to_string();
    let (tools, choice, rest) = ToolChoice::read_request(&text).expect("a request");
    assert_eq!((tools, choice), (vec![Tool::new("f")], ToolChoice::Required));
    assert_eq!(rest["format"], "llama");
    let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
    let deep = format!("{{\"tools\": [{deep}], \"toolChoice\": \"auto\"}}");
    for (text, fault) in [
        (
            deep.as_str(),
            "tools[0].function: expected JSON of at most 127 levels, found recursion limit",
        ),
        ("{}", "tools[0].type: expected a list of tools, found nothing"),
        ("{\"tools\": [], \"toolChoice\": \"any\"}", "the tool choice `\"any\"` is no tool"),
    ] {
        let error = ToolChoice::read_request(text).expect_err(fault).to_string();
        assert!(error.starts_with(fault), "{error}");
    }
}

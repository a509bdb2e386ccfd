//! The description of the routes, against their answers.

use axum::Router;
use futures::future::join_all;
use serde_json::{Value, json};
use setun_serve::{ApiKeys, Limits, ServeOptions, router};

use crate::support::{Answer, get, post, router_with_files, shared};

/// Values of each type, some of which any field refuses.
fn candidates() -> [Value; 5] {
    [json!("wrong"), json!(0.5), json!(true), json!([[]]), json!({"wrong": 1})]
}

/// Fields that say something only beside others.
const COMPANIONS: [(&str, &str); 1] = [("tool_choice", "tools")];

/// Requests that are sent together.
const AT_ONCE: usize = 8;

/// A description.
struct Document(Value);

/// A route that takes a body.
struct Route<'a> {
    path: &'a str,
    operation: &'a Value,
    schema: &'a Value,
    example: &'a Value,
}

impl Document {
    async fn of(router: &Router) -> Self {
        Self(get(router, "/openapi.json").await.json())
    }

    fn routes(&self) -> impl Iterator<Item = Route<'_>> {
        let paths = self.0["paths"].as_object().expect("paths").iter();
        paths.filter_map(|(path, operations)| {
            let operation = &operations["post"];
            let content = &operation["requestBody"]["content"]["application/json"];
            let (schema, example) = (&content["schema"], content.get("example")?);
            Some(Route { path, operation, schema, example })
        })
    }

    /// A value of the components, where this is the name of one.
    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        let Some(name) = value["$ref"].as_str() else { return value };
        self.0.pointer(name.strip_prefix('#').expect("a fragment")).expect(name)
    }

    /// Values that fit a schema: each alternative, each name, and each field of an object.
    fn samples(&self, schema: &Value) -> Vec<Value> {
        let schema = self.resolved(schema);
        if let Some(examples) = schema["examples"].as_array() {
            return examples.clone();
        }
        let not_null =
            |values: &[Value]| values.iter().filter(|one| !one.is_null()).cloned().collect();
        if let Some(names) = schema["enum"].as_array() {
            return not_null(names);
        }
        if let Some(schemas) = schema["anyOf"].as_array() {
            return schemas.iter().flat_map(|schema| self.samples(schema)).collect();
        }
        match types(schema).next().unwrap_or("boolean") {
            "string" => vec![json!("a")],
            "integer" => vec![schema["minimum"].as_i64().map_or(json!(1), Value::from)],
            "number" => vec![schema.get("minimum").cloned().unwrap_or(json!(1.5))],
            "array" if schema["maxItems"] == 0 => vec![json!([])],
            "array" => {
                self.samples(&schema["items"]).into_iter().map(|item| json!([item])).collect()
            }
            "object" => self.objects(schema),
            "null" => vec![],
            _ => vec![json!(true), json!(false)],
        }
    }

    fn objects(&self, schema: &Value) -> Vec<Value> {
        let Some(fields) = schema["properties"].as_object() else { return vec![json!({})] };
        let required = schema["required"].as_array().into_iter().flatten();
        let mut least = json!({});
        for name in required.filter_map(Value::as_str) {
            least[name] = self.samples(&fields[name])[0].clone();
        }
        let mut objects = vec![least.clone()];
        for (name, field) in fields {
            objects.extend(self.samples(field).into_iter().map(|value| {
                let mut object = least.clone();
                object[name] = value;
                object
            }));
        }
        objects
    }

    /// Why a value does not fit a schema. In an answer every field has to be described.
    fn mismatch(&self, schema: &Value, value: &Value, is_answer: bool) -> Option<String> {
        let schema = self.resolved(schema);
        if let Some(schemas) = schema["anyOf"].as_array() {
            let mismatches = schemas.iter().map(|schema| self.mismatch(schema, value, is_answer));
            return mismatches.collect::<Option<Vec<_>>>().map(|all| all.join("; "));
        }
        if let Some(names) = schema["enum"].as_array()
            && !names.contains(value)
        {
            return Some(format!("{value} is none of {names:?}"));
        }
        let mut types = types(schema).peekable();
        if types.peek().is_some() && !types.any(|name| is_of_type(value, name)) {
            return Some(format!("{value} is no {}", schema["type"]));
        }
        let number = value.as_f64();
        let beyond = number < schema["minimum"].as_f64().filter(|_| number.is_some())
            || number > schema["maximum"].as_f64().or(Some(f64::INFINITY));
        if beyond {
            return Some(format!("{value} is out of range"));
        }
        let is_longer = |list: &&Vec<Value>| {
            schema["maxItems"].as_u64().is_some_and(|most| list.len() as u64 > most)
        };
        if value.as_array().is_some_and(|list| is_longer(&list)) {
            return Some(format!("{value} is too long"));
        }
        let items = value.as_array().into_iter().flatten();
        let mut mismatches =
            items.filter_map(|item| self.mismatch(&schema["items"], item, is_answer));
        mismatches.next().or_else(|| self.mismatch_of_fields(schema, value, is_answer))
    }

    fn mismatch_of_fields(&self, schema: &Value, value: &Value, is_answer: bool) -> Option<String> {
        let fields = value.as_object()?;
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                return Some(format!("{name} is missing in {value}"));
            }
        }
        let is_open = schema.get("properties").is_none();
        fields.iter().find_map(|(name, field)| {
            match schema["properties"].get(name).or_else(|| schema.get("additionalProperties")) {
                Some(schema) => {
                    let why = self.mismatch(schema, field, is_answer)?;
                    Some(format!("{name}: {why}"))
                }
                None if is_answer && !is_open => Some(format!("{name} is not described")),
                None => None,
            }
        })
    }

    /// Checks the status, the type and the body of an answer.
    #[track_caller]
    fn check(&self, operation: &Value, answer: &Answer) {
        let status = answer.status.as_u16().to_string();
        let response = self.resolved(&operation["responses"][&status]);
        let content_type = answer.headers["content-type"].to_str().expect("ASCII");
        let content = response["content"].get(content_type);
        let content = content.unwrap_or_else(|| panic!("{status} {content_type}: {}", answer.text));
        if content_type == "application/json" {
            let body = serde_json::from_str(&answer.text).expect("JSON");
            let mismatch = self.mismatch(&content["schema"], &body, true);
            assert!(mismatch.is_none(), "{}: {mismatch:?}\n{body}", operation["operationId"]);
        }
    }
}

fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let several = schema["type"].as_array().into_iter().flatten();
    std::iter::once(&schema["type"]).chain(several).filter_map(Value::as_str)
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    }
}

/// A field of a request, and a part of one that the example has.
fn fields<'a>(route: &Route<'a>) -> Vec<(Vec<&'a str>, &'a Value)> {
    let top = route.schema["properties"].as_object().expect("fields");
    let mut all = vec![];
    for (name, field) in top {
        all.push((vec![name.as_str()], field));
        let inner = field["properties"].as_object().into_iter().flatten();
        if route.example.get(name).is_some() {
            all.extend(inner.map(|(inner, field)| (vec![name.as_str(), inner], field)));
        }
    }
    all
}

/// The name that an option has in the table of options.
fn own_name<'a>(schema: &'a Value, name: &'a str) -> &'a str {
    let words = schema["properties"][name]["description"].as_str();
    let other = words.and_then(|words| words.strip_prefix("Another name of `"));
    other.and_then(|other| other.strip_suffix("`.")).unwrap_or(name)
}

/// Requests that a field may be a part of.
fn bases(document: &Document, route: &Route<'_>, path: &[&str]) -> Vec<Value> {
    let mut base = route.example.clone();
    let (name, parents) = path.split_last().expect("a name");
    let schema = parents.iter().fold(route.schema, |schema, name| &schema["properties"][name]);
    let object = parents.iter().fold(&mut base, |object, name| &mut object[*name]);
    let object = object.as_object_mut().expect("an object");
    // Of an option with several names one may be given.
    object.retain(|other, _| other == name || own_name(schema, other) != own_name(schema, name));
    if let Some((_, other)) = COMPANIONS.iter().find(|(field, _)| field == name)
        && let Some(field) = schema["properties"].get(other)
    {
        object.insert((*other).to_owned(), document.samples(field).pop().expect("a value"));
    }
    let messages = route.schema["properties"].get("messages");
    let other = messages.filter(|_| base.get("prompt").is_some()).map(|messages| {
        let mut other = base.clone();
        other["messages"] = document.samples(messages)[0].clone();
        other["prompt"] = Value::Null;
        other
    });
    std::iter::once(base).chain(other).collect()
}

fn with_field(mut base: Value, path: &[&str], value: &Value) -> Value {
    *path.iter().fold(&mut base, |object, name| &mut object[*name]) = value.clone();
    base
}

/// Whether an answer says that a field is wrong.
fn refuses(answer: &Answer, path: &[&str]) -> bool {
    if answer.status.as_u16() != 400 {
        return false;
    }
    let body: Value = serde_json::from_str(&answer.text).expect("JSON");
    let error = &body["error"];
    let message = error["message"].as_str().or(error.as_str()).expect("a message");
    let found = error["param"].as_str().unwrap_or(message);
    found.starts_with(&path.join("."))
}

/// Whether a field is refused in each of the requests that it may be a part of. All are sent at once
/// and every answer is as it is described.
async fn refusals(
    router: &Router,
    document: &Document,
    route: &Route<'_>,
    path: &[&str],
    value: &Value,
) -> Vec<bool> {
    let bodies = bases(document, route, path).into_iter().map(|base| with_field(base, path, value));
    let answers = bodies.map(async |body| {
        let answer = post(router, route.path, &body).await;
        document.check(route.operation, &answer);
        assert!(!answer.status.is_server_error(), "{body}: {}", answer.text);
        refuses(&answer, path)
    });
    join_all(answers).await
}

/// Each field refuses a value of another type, and its absence where it is required, by its name.
#[tokio::test]
async fn described_fields_refuse_other_values_by_their_names() {
    let (router, _folder) = router_with_files(ServeOptions::new());
    let document = Document::of(&router).await;
    let mut count = 0;
    for route in document.routes() {
        for (path, field) in fields(&route) {
            let mut wrong = candidates().to_vec();
            wrong.retain(|value| document.mismatch(field, value, false).is_some());
            let required = route.schema["required"].as_array();
            if path.len() == 1 && required.is_some_and(|names| names.contains(&json!(path[0]))) {
                wrong.push(Value::Null);
            }
            for value in wrong {
                let refused = refusals(&router, &document, &route, &path, &value).await;
                assert!(refused.contains(&true), "{} {path:?}: {value}", route.path);
                count += 1;
            }
        }
    }
    assert!(count > 1000, "{count}");
}

/// Each field takes the values that its schema has.
#[tokio::test]
async fn described_fields_take_their_values() {
    let mut limits = Limits::default();
    limits.output_tokens = Some(2);
    let (router, _folder) = router_with_files(ServeOptions::new().limits(limits));
    let document = Document::of(&router).await;
    for route in document.routes() {
        let fields = fields(&route);
        let samples = fields.iter().flat_map(|(path, field)| {
            document.samples(field).into_iter().map(move |value| (path, value))
        });
        let samples: Vec<_> = samples.collect();
        for samples in samples.chunks(AT_ONCE) {
            let taken = samples.iter().map(async |(path, value)| {
                let refused = refusals(&router, &document, &route, path, value).await;
                assert!(refused.contains(&false), "{} {path:?}: {value}", route.path);
            });
            join_all(taken).await;
        }
    }
}

/// Routes without a body answer as they are described, and those that need a key say so.
#[tokio::test]
async fn other_routes_answer_as_described() {
    let (open, _folder) = router_with_files(ServeOptions::new());
    let keys = ApiKeys::parse("key").expect("a key");
    let closed = router(shared(), ServeOptions::new().api_keys(keys));
    let document = Document::of(&open).await;
    for (path, operations) in document.0["paths"].as_object().expect("paths") {
        let operation = &operations["get"];
        if operation.is_null() {
            continue;
        }
        let path = path.replace("{id}", "stories");
        let answer = get(&open, &path).await;
        document.check(operation, &answer);
        let is_open = operation["security"] == json!([]);
        let status = if is_open { answer.status.as_u16() } else { 401 };
        assert_eq!(get(&closed, &path).await.status.as_u16(), status, "{path}");
    }
    assert_eq!(document.0["openapi"], "3.1.0");
    assert_eq!(document.0["security"], Value::Null, "this server has no keys");
}

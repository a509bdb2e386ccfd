//! The description against what the codecs read.

use std::collections::BTreeSet;

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    http::Request,
};
use serde_json::{Map, Value, json};
use setun::{Engine, Model};
use tower::ServiceExt;

use crate::{FileLimits, FileStore, ServeOptions, fields::taken, router};

async fn send(router: &Router, request: Request<Body>) -> Bytes {
    let response = router.clone().oneshot(request).await.expect("an answer");
    to_bytes(response.into_body(), usize::MAX).await.expect("a body")
}

/// The names of an object's fields, and of those inside the objects that an example has.
fn names(schema: &Value, example: &Value, path: &str, all: &mut BTreeSet<String>) {
    if schema.get("anyOf").is_some() {
        let given = example.as_object().into_iter().flat_map(Map::keys);
        return all.extend(given.map(|name| format!("{path}{name}")));
    }
    let Some(fields) = schema["properties"].as_object() else { return };
    for (name, field) in fields {
        all.insert(format!("{path}{name}"));
        if let Some(inner) = example.get(name) {
            names(field, inner, &format!("{path}{name}."), all);
        }
    }
}

/// An example with each of some fields in place of the others.
fn alternatives(example: &Value, fields: &Map<String, Value>) -> Vec<Value> {
    let mut bodies = vec![example.clone()];
    if example.get("prompt").is_some() && fields.contains_key("messages") {
        let mut other = example.clone();
        other["messages"] = json!([{"role": "user", "content": "a"}]);
        other["prompt"] = Value::Null;
        bodies.push(other);
    }
    bodies
}

/// Each field that a codec reads is described, and each that is described is read.
#[tokio::test]
async fn codecs_read_what_is_described() {
    let model = Model::embedded().expect("a model");
    let engine = Engine::builder(model).build().expect("an engine");
    let folder = tempfile::tempdir().expect("a folder");
    let store = FileStore::open(folder.path(), FileLimits::default()).expect("a store");
    let router = router(engine, ServeOptions::new().files(store));
    let get = Request::get("/openapi.json").body(Body::empty()).expect("a request");
    let document: Value = serde_json::from_slice(&send(&router, get).await).expect("JSON");
    let mut routes = 0;
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let content = &operations["post"]["requestBody"]["content"]["application/json"];
        let Some(fields) = content["schema"]["properties"].as_object() else { continue };
        let mut described = BTreeSet::new();
        names(&content["schema"], &content["example"], "", &mut described);
        let mut read = BTreeSet::new();
        for body in alternatives(&content["example"], fields) {
            let post = Request::post(path).body(Body::from(body.to_string()));
            taken::names();
            send(&router, post.expect("a request")).await;
            read.append(&mut taken::names());
        }
        // Those of items and of objects that the example lacks have schemas of their own.
        read.retain(|name| !name.contains('['));
        assert_eq!(read, described, "{path}");
        routes += 1;
    }
    assert_eq!(routes, 16);
}

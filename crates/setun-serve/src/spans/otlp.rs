//! Spans as OTLP in JSON: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{Attribute, Span};

/// Numbers of OTLP.
const KIND_SERVER: u8 = 2;
const STATUS_ERROR: u8 = 2;

/// The body of a request that exports spans.
pub(super) fn body(spans: &[Span]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let service = [
        ("service.name", Attribute::Text("setun".to_owned())),
        ("service.version", Attribute::Text(version.to_owned())),
    ];
    let spans: Vec<_> = spans.iter().map(span).collect();
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&service)},
        "scopeSpans": [{"scope": {"name": env!("CARGO_PKG_NAME"), "version": version}, "spans": spans}],
    }]});
    body.to_string().into_bytes()
}

fn span(span: &Span) -> Value {
    let mut value = json!({
        "traceId": span.trace_id,
        "spanId": span.id,
        "name": span.name,
        "kind": KIND_SERVER,
        "startTimeUnixNano": nanoseconds(span.begin),
        "endTimeUnixNano": nanoseconds(span.end),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = &span.parent_id {
        value["parentSpanId"] = parent.as_str().into();
    }
    if let Some(error) = &span.error {
        value["status"] = json!({"code": STATUS_ERROR, "message": error});
    }
    value
}

fn attributes(attributes: &[(&'static str, Attribute)]) -> Value {
    attributes.iter().map(|(key, value)| json!({"key": key, "value": any_value(value)})).collect()
}

/// Integers of 64 bits are strings in this form.
fn any_value(value: &Attribute) -> Value {
    match value {
        Attribute::Flag(flag) => json!({"boolValue": flag}),
        Attribute::Integer(integer) => json!({"intValue": integer.to_string()}),
        Attribute::Number(number) => json!({"doubleValue": number}),
        Attribute::Text(text) => json!({"stringValue": text}),
        Attribute::Texts(texts) => {
            let values: Vec<_> = texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
    }
}

fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

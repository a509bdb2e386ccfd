//! Steps one after the other, as a chart shows them.

use serde_json::Value;
use setun::{EngineProfile, GenerateOptions};

use super::builder;

/// What a generation of this many tokens gave.
fn profile(tokens: usize) -> EngineProfile {
    let engine = builder().build().expect("a start");
    pollster::block_on(engine.start_timeline()).expect("an engine");
    let options = GenerateOptions::new().max_tokens(tokens).seed(1);
    engine.complete((1..=20).collect::<Vec<u32>>(), options).expect("a text");
    pollster::block_on(engine.end_profile()).expect("an engine").expect("a level that times")
}

/// Beginning and end in microseconds.
fn span(event: &Value) -> (f64, f64) {
    let number = |name: &str| event[name].as_f64().expect("a number");
    (number("ts"), number("ts") + number("dur"))
}

#[test]
fn a_trace_has_each_operation_within_its_step() {
    let profile = profile(6);
    let mut text = vec![];
    profile.timeline.write_chrome(&mut text).expect("memory");
    let trace: Value = serde_json::from_slice(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let of = |category: &'static str| events.iter().filter(move |event| event["cat"] == category);
    assert!(of("operation").chain(of("step")).all(|event| event["ph"] == "X"));
    let passes: Vec<_> = of("step").filter(|event| event["name"] == "forward").collect();
    let steps: Vec<_> = of("step").filter(|event| event["name"] != "forward").collect();
    let names: Vec<_> = steps.iter().map(|step| step["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["prefill", "decode", "decode", "decode", "decode", "decode"]);
    assert_eq!((&steps[0]["args"]["rows"], &steps[1]["args"]["rows"]), (&20.into(), &1.into()));

    // To a thousandth of a microsecond, in which times are written.
    let within =
        |inner: (f64, f64), outer: (f64, f64)| inner.0 > outer.0 - 1e-3 && inner.1 < outer.1 + 1e-3;
    let mut end = 0.0;
    for (step, pass) in steps.iter().zip(&passes) {
        assert!(span(step).0 >= end, "steps follow each other");
        end = span(step).1;
        assert!(within(span(pass), span(step)), "{pass} {step}");
        let ops: Vec<_> = of("operation").filter(|op| within(span(op), span(pass))).collect();
        let layers = ops.iter().filter_map(|op| op["args"]["layer"].as_u64()).max();
        let first = ops.first().expect("operations");
        assert_eq!((first["name"].as_str(), layers.is_some()), (Some("embed"), true));
        let attention = ops.iter().filter(|op| op["name"] == "attention");
        assert_eq!(attention.count() as u64, layers.expect("layers") + 1, "one a layer");
        let mut others = ops.iter().zip(&ops[1..]);
        assert!(others.all(|(op, next)| span(op).1 < span(next).0 + 1e-3), "one after the other");
    }
    let count = of("operation").count();
    assert_eq!(count, profile.timeline.steps().map(|step| step.ops.len()).sum::<usize>());
    let calls = profile.prefill.steps.ops.iter().chain(&profile.decode.steps.ops);
    assert_eq!(count, calls.map(|op| op.calls).sum::<usize>());
}

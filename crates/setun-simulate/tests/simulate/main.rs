//! Traces and simulations, by hand and by property.

mod exact;
mod properties;
mod traces;

use setun_simulate::{Limits, Options, Policy, Request, StepCosts};

/// A request of segments.
fn request(at_ms: u64, key: &str, prompt: &[(&str, u32)], output: u32) -> Request {
    let prompt = prompt.iter().map(|(id, tokens)| ((*id).to_owned(), *tokens)).collect();
    Request { at_ms, key: key.to_owned(), prompt, output }
}

/// Replicas that take a millisecond a row and have room for this number of tokens.
fn options(replicas: u32, policy: Policy, cache: u32) -> Options {
    let line = vec![(1, 1.0), (1000, 1000.0)];
    let costs =
        StepCosts { name: "a millisecond a row".to_owned(), decode: line.clone(), prefill: line };
    let limits = Limits { cache, prefix: cache, ..Limits::default() };
    Options { limits, costs, ..Options::new(replicas, policy) }
}

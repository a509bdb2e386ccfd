//! The prefix cache of a simulated replica against that of an engine, request by request.

use std::collections::HashMap;

use setun::{Engine, Model, Prompt};
use setun_simulate::{Limits, Options, Policy, Request, TraceKind, TraceOptions};
use setun_tests::fixture;

use super::{MODEL, greedy};

/// Positions of a context. With one context, requests have to make room in each other's prefixes.
const CONTEXT: u32 = 512;

fn engine(contexts: u32, prefix: u32) -> Engine {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    let engine =
        Engine::builder(model).contexts(contexts as usize).context_length(CONTEXT as usize);
    engine.prefix_positions(prefix as usize).build().expect("an engine")
}

/// The tokens of segments: made up by their names, but for replies, which are what was generated.
#[derive(Default)]
struct Segments(HashMap<String, Vec<u32>>);

impl Segments {
    fn tokens(&self, id: &str, count: u32) -> Vec<u32> {
        if let Some(reply) = self.0.get(id) {
            return reply.clone();
        }
        let seed = id.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte));
        let token = |index: u32| 3 + (seed ^ index.wrapping_mul(2_654_435_761)) % 500;
        (0..count).map(token).collect()
    }
}

/// Cached tokens of each request, one after the other.
fn cached_by_engine(engine: &Engine, trace: &[Request]) -> Vec<u32> {
    let mut segments = Segments::default();
    let mut last = HashMap::<&str, (usize, Vec<u32>)>::new(); // segments of a prompt, and its reply
    let mut cached = vec![];
    for request in trace {
        if let Some((count, reply)) = last.remove(request.key.as_str())
            && let Some((id, _)) = request.prompt.get(count)
        {
            segments.0.insert(id.clone(), reply);
        }
        let tokens = request.prompt.iter().flat_map(|(id, count)| segments.tokens(id, *count));
        let options = greedy(request.output as usize).min_tokens(request.output as usize);
        let found = engine.complete(Prompt::Tokens(tokens.collect()), options).expect("a text");
        assert_eq!(found.tokens.len(), request.output as usize);
        assert_eq!(found.done.usage.prompt_tokens as u64, request.prompt_tokens());
        cached.push(u32::try_from(found.done.usage.cached_tokens).expect("few"));
        last.insert(&request.key, (request.prompt.len(), found.tokens));
    }
    cached
}

fn cached_by_simulation(contexts: u32, prefix: u32, trace: &[Request]) -> Vec<u32> {
    let limits = Limits { cache: contexts * CONTEXT, prefix, ..Limits::default() };
    // One client, so that each request waits for the one before.
    let options = Options { limits, open: Some(1), ..Options::new(1, Policy::RoundRobin) };
    let answers = setun_simulate::answers(trace, &options).expect("a simulation");
    answers.iter().map(|answer| answer.cached).collect()
}

#[test]
fn a_simulated_cache_finds_what_the_engine_finds() {
    for (contexts, prefix) in [(1, 512), (1, 128), (2, 700), (8, 0)] {
        let engine = engine(contexts, prefix);
        let mut total = 0;
        for (seed, kind) in [(1, TraceKind::Conversations), (2, TraceKind::Prompts)] {
            engine.reset_prefix_cache().expect("a running engine");
            let options = TraceOptions {
                requests: 60,
                system_prompts: 4,
                system_tokens: 90,
                turns: 3,
                message_tokens: 30,
                output: 12,
                seed,
                ..TraceOptions::default()
            };
            let trace = setun_simulate::generate(kind, &options).expect("a trace");
            let expected = cached_by_engine(&engine, &trace);
            assert_eq!(
                cached_by_simulation(contexts, prefix, &trace),
                expected,
                "{contexts} {prefix}"
            );
            total += expected.iter().sum::<u32>();
        }
        assert_eq!(total > 0, prefix > 0, "{contexts} {prefix}: {total}");
    }
}

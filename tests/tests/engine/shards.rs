//! Engines whose weights are shared by workers answer as one alone does, whatever is requested.

use futures::executor::block_on;
use setun::{CpuOptions, Device, Engine, Event, HeadType, ModelReader, Workers};
use setun_cpu::testing::ShardThreads;

use setun_tests::fixture;

use super::{
    MODEL, greedy,
    screened_head::{outcome, sampling, stories},
};

const OPTIONS: CpuOptions = CpuOptions { level: None, threads: Some(1) };

fn engine(workers: usize, head: HeadType) -> Engine {
    let builder = Engine::builder(stories()).device(Device::Cpu).threads(1).head_type(head);
    let shared = Workers::new(Box::new(ShardThreads::new(OPTIONS, workers)));
    let engine = builder.workers(shared).build().expect("an engine");
    assert_eq!(engine.threads(), workers + 1);
    engine
}

#[test]
fn texts_are_those_of_one_alone() {
    for head in [HeadType::Screened, HeadType::Stored] {
        let alone = Engine::builder(stories()).device(Device::Cpu).head_type(head);
        let alone = alone.build().expect("an engine");
        for (workers, prompt) in [(1, 300), (3, 5)] {
            let shared = engine(workers, head);
            let prompt: Vec<u32> = (0..prompt).map(|index| 7 + index * 13 % 900).collect();
            for options in sampling(17) {
                let options = options.max_tokens(40);
                let expected = outcome(&alone, &prompt, options.clone());
                assert_eq!(outcome(&shared, &prompt, options), expected, "{workers} workers");
            }
        }
    }
}

#[test]
fn saved_sessions_are_those_of_one_alone() {
    let alone = Engine::builder(stories()).device(Device::Cpu).build().expect("an engine");
    let shared = engine(2, HeadType::Auto);
    let save = |engine: &Engine| {
        let mut session = engine.session();
        session.push("Once upon a time").expect("room");
        block_on(session.save()).expect("bytes")
    };
    assert_eq!(save(&shared), save(&alone));
}

#[test]
fn generations_continue_without_workers_that_were_lost() {
    let alone = Engine::builder(stories()).device(Device::Cpu).build().expect("an engine");
    let expected = alone.complete("Once upon a time", greedy(60)).expect("a story").tokens;
    let threads = ShardThreads::new(OPTIONS, 2).ends_after(1000);
    let reader = ModelReader::open(fixture(MODEL)).expect("the story model");
    let builder = Engine::builder(reader).device(Device::Cpu).threads(1);
    let shared = builder.workers(Workers::new(Box::new(threads))).build().expect("an engine");
    let mut tokens = vec![];
    for event in shared.generate("Once upon a time", greedy(60)).expect("a story").blocking() {
        if let Event::Text(delta) = event.expect("an event") {
            tokens.push(delta.token);
        }
    }
    assert_eq!(tokens, expected);
}

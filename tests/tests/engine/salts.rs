//! Salts of the prefix cache: what is shared and what is not, by the counts of cached tokens.

use futures::executor::block_on;
use setun::{BeamOptions, Engine, GenerateOptions, GenerationStream, Model, Pooling};
use setun_tests::fixture;

use super::{MODEL, greedy};

/// Longer than a block of the cache.
const PROMPT: &str = "Once upon a time there was a little dog who liked to play in the park. He ran and ran, \
    and then he saw a big red ball. He wanted to play with the ball, but the ball was too big for him.";

fn engine() -> Engine {
    let model = Model::open(fixture(MODEL)).expect("the story model");
    Engine::builder(model).prefix_positions(2048).build().expect("an engine")
}

fn salted(salt: Option<&str>) -> GenerateOptions {
    salt.map_or(greedy(4), |salt| greedy(4).cache_salt(salt.to_owned()))
}

/// Tokens of the prompt that were cached, and the text.
fn run(engine: &Engine, salt: Option<&str>) -> (usize, String) {
    let found = engine.complete(PROMPT, salted(salt)).expect("a text");
    (found.done.usage.cached_tokens, found.text)
}

#[test]
fn salts_share_nothing_and_change_no_text() {
    let engine = engine();
    let salts = [None, Some("a"), Some("b")];
    let firsts = salts.map(|salt| run(&engine, salt));
    let text = firsts[0].1.clone();
    assert!(firsts.iter().all(|first| *first == (0, text.clone())), "{firsts:?}");
    let known = run(&engine, None).0;
    assert!(known > 0, "without a salt it is as ever");
    assert_eq!(salts.map(|salt| run(&engine, salt)), [(); 3].map(|()| (known, text.clone())));

    let samples = || {
        let streams = engine.generate_many(PROMPT, salted(Some("samples")), 2).expect("streams");
        let cached = |one: GenerationStream| one.wait().expect("a text").done.usage.cached_tokens;
        streams.into_iter().map(cached).collect::<Vec<_>>()
    };
    assert_eq!([samples(), samples()], [[0, 0], [known, known]]);
    let search = || {
        let found = engine.beams(PROMPT, BeamOptions::new(2), salted(Some("beams")));
        found.expect("a search").wait().expect("texts").done.usage.cached_tokens
    };
    assert_eq!((search(), search()), (0, known));
}

/// Sessions, vectors and scores have the salt of their handle, which an option may replace.
#[test]
fn a_handle_gives_its_salt_to_all_that_it_begins() {
    let engine = engine();
    let tenant = |salt: &str| engine.clone().with_cache_salt(salt);
    let mut session = tenant("a").session();
    session.push(PROMPT).expect("tokens");
    let next = |session: &setun::Session, options| {
        let stream = session.generate(options).expect("a stream");
        stream.wait().expect("a text").done.usage.cached_tokens
    };
    assert_eq!(next(&session, greedy(4)), 0);
    let known = next(&session.clone(), greedy(4));
    assert!(known > 0, "a fork has what the session has");
    assert_eq!(next(&session, salted(Some("b"))), 0, "the option goes before");
    let saved = block_on(session.save()).expect("bytes");
    block_on(tenant("c").restore(saved)).expect("a session");
    assert_eq!(run(&tenant("c"), None).0, known, "what was computed with another salt");

    let vector = block_on(tenant("d").embed([PROMPT], Pooling::Last, true)).remove(0);
    vector.expect("a vector");
    block_on(tenant("e").score(PROMPT, &[" He", " She"])).expect("scores");
    let weak = tenant("d").downgrade().upgrade().expect("an engine");
    assert_eq!([run(&weak, None).0, run(&tenant("e"), None).0], [known; 2]);
    assert_eq!((run(&tenant("f"), None).0, run(&engine, None).0), (0, 0));
}

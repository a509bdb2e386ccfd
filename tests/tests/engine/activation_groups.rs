//! Engines that differ in the columns of activations that share a scale.

use futures::executor::block_on;
use setun::{ActivationGroup, Engine, Model};
use setun_tests::fixture;

use super::{MODEL, greedy};

/// Longer than a block of the cache.
const PROMPT: &str = "Once upon a time there was a little dog who liked to play in the park. He ran and ran, \
    and then he saw a big red ball. He wanted to play with the ball, but the ball was too big for him.";

fn model() -> Model {
    Model::open(fixture(MODEL)).expect("the story model")
}

fn engine(group: ActivationGroup) -> Engine {
    Engine::builder(model()).activation_group(group).build().expect("an engine")
}

/// Tokens that were cached when a session goes on that another engine has saved.
fn cached(saved: &[u8], engine: &Engine) -> usize {
    let session = block_on(engine.restore(saved.to_vec())).expect("a session");
    let stream = session.generate(greedy(4)).expect("a stream");
    stream.wait().expect("a text").done.usage.cached_tokens
}

#[test]
fn a_saved_session_is_of_one_activation_group() {
    let first = engine(ActivationGroup::Columns32);
    let mut session = first.session();
    session.push(PROMPT).expect("tokens");
    session.generate(greedy(4)).expect("a stream").wait().expect("a text");
    let saved = block_on(session.save()).expect("bytes");
    assert!(cached(&saved, &engine(ActivationGroup::Columns32)) > 0);
    for other in [ActivationGroup::Columns64, ActivationGroup::Row] {
        assert_eq!(cached(&saved, &engine(other)), 0, "{other}");
    }
    let default = Engine::builder(model()).build().expect("an engine");
    assert_eq!(cached(&saved, &default), 0);
}

/// A draft that is the model itself is right wherever the texts of both agree.
#[test]
fn a_draft_keeps_its_own_and_changes_no_text() {
    let alone = engine(ActivationGroup::Columns32);
    let builder = Engine::builder(model()).activation_group(ActivationGroup::Columns32);
    let drafted = builder.draft(model()).build().expect("an engine");
    let text = |engine: &Engine, lookahead| {
        engine.complete(PROMPT, greedy(40).lookahead(lookahead)).expect("a text").text
    };
    assert_eq!(text(&drafted, 8), text(&alone, 0));
}

//! Texts as vectors: against the reference's hidden states, and the same whatever runs beside
//! them.

use futures::executor::block_on;
use setun::{CacheType, Engine, ErrorCode, Model, Pooling, Prompt};
use setun_tests::{
    golden::{Golden, MODELS, max_difference},
    run::devices,
};

use super::{engine, greedy};

fn embed(engine: &Engine, tokens: &[u32], pooling: Pooling, normalised: bool) -> Vec<f32> {
    let found = block_on(engine.embed([tokens.to_vec()], pooling, normalised)).remove(0);
    let found = found.expect("an embedding");
    assert_eq!(found.tokens, tokens.len());
    found.values
}

/// The last hidden states of the reference, `[tokens, hidden]`: the last of those it recorded.
fn reference(golden: &Golden, prompt: &str) -> Option<Vec<f32>> {
    let state = |index: usize| golden.floats(&format!("{prompt}.hidden_f32.{index}"));
    (0..).map_while(state).last()
}

#[test]
fn vectors_are_those_of_the_reference() {
    let mut compared = 0;
    for model in MODELS {
        let golden = Golden::read(model);
        for device in devices() {
            let opened = Model::open(&golden.folder).expect("a golden model");
            let builder = Engine::builder(opened).device(device.clone());
            let engine = builder.cache_type(CacheType::F32).build().expect("an engine");
            for prompt in ["p1", "p7", "z7"] {
                let Some(expected) = reference(&golden, prompt) else { continue };
                let ids = golden.ids(&format!("{prompt}.ids"));
                let hidden = expected.len() / ids.len();
                let last = &expected[expected.len() - hidden..];
                let count = f32::from(u8::try_from(ids.len()).expect("few"));
                let mean: Vec<f32> = (0..hidden)
                    .map(|place| expected.iter().skip(place).step_by(hidden).sum::<f32>() / count)
                    .collect();
                // As for hidden states: 1e-4 of the largest, and 0.6 where a code may flip.
                let strict = golden.prompts[prompt].is_strict();
                let bound = if strict { 1e-4 } else { 0.6 };
                for (pooling, expected) in [(Pooling::Last, last), (Pooling::Mean, &mean)] {
                    let found = embed(&engine, &ids, pooling, false);
                    let scale = expected.iter().fold(1.0f32, |most, x| most.max(x.abs()));
                    let difference = max_difference(&found, expected);
                    let case = format!("{model} {prompt} {pooling:?} on {device}");
                    assert!(difference <= bound * scale, "{case}: {difference} of {scale}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared >= 2 * MODELS.len() * devices().len(), "{compared}");
}

#[test]
fn vectors_do_not_depend_on_what_runs_beside_them() {
    let alone = engine();
    let text = |seed: u32| (0..60 + 50 * seed).map(|at| (at * 7 + seed) % 500).collect();
    let texts: Vec<Vec<u32>> = (0..8).map(text).collect();
    for pooling in [Pooling::Last, Pooling::Mean] {
        let expected: Vec<_> = texts.iter().map(|t| embed(&alone, t, pooling, true)).collect();
        let squares: f32 = expected[0].iter().map(|x| x * x).sum();
        assert!((squares - 1.0).abs() < 1e-5, "{squares}");
        let model = Model::open(setun_tests::fixture(super::MODEL)).expect("the story model");
        let engine = Engine::builder(model).contexts(2).build().expect("an engine");
        let story = engine.generate("Once upon a time", greedy(120)).expect("a stream");
        let found = block_on(engine.embed(texts.clone(), pooling, true));
        let found: Vec<_> = found.into_iter().map(|found| found.expect("a text").values).collect();
        assert_eq!(found, expected, "{pooling:?}");
        let story = story.wait().expect("a story");
        let plain = alone.complete("Once upon a time", greedy(120)).expect("a story");
        assert_eq!(story.tokens, plain.tokens);
    }
    let distinct = embed(&alone, &texts[1], Pooling::Mean, true);
    assert_ne!(distinct, embed(&alone, &texts[1], Pooling::Last, true));
}

#[test]
fn what_cannot_be_embedded_spoils_nothing() {
    let texts = [Prompt::Tokens(vec![1; 513]), Prompt::Tokens(vec![]), "Once".into()];
    let found = block_on(engine().embed(texts, Pooling::Mean, true));
    let codes: Vec<_> =
        found.iter().map(|found| found.as_ref().err().map(setun::EngineError::code)).collect();
    assert_eq!(codes, [Some(ErrorCode::ContextFull), Some(ErrorCode::BadOption), None]);
    // A text may fill the context.
    let whole = vec![3; 512];
    assert_eq!(embed(&engine(), &whole, Pooling::Last, false).len(), 128);
}

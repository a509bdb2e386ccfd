//! Models split over several backends give the bits of those in one piece.

use std::path::PathBuf;

use setun::{
    Level,
    forward::{ModelError, Outputs, RequestedOutput, Split, TransformerOptions},
    ops::{CacheElement, OpsError, ScalarBackend, top_logits::TopLogitsRequest},
};
use setun_cpu::{CpuBackend, CpuOptions};
use setun_tests::{
    checkpoint, fixture,
    golden::{Golden, MODELS},
    run::{Runner, transformer},
    stages::{NewStage, Session, on, stages},
};

const LAYERS: [&str; 2] = ["bitnet-h64/packed", "real-tinystories-1m"]; // more than two

fn folder(model: &str) -> PathBuf {
    fixture(&format!("golden/{model}"))
}

fn options(cache_element: CacheElement, ranked: bool) -> TransformerOptions {
    TransformerOptions { cache_element, ranked, ..TransformerOptions::default() }
}

fn cpu(level: Level, threads: usize) -> CpuBackend {
    CpuBackend::new(CpuOptions { level: Some(level), threads: Some(threads) }).expect("a level")
}

fn whole(model: &str, options: TransformerOptions) -> Session {
    Session::new(transformer(folder(model), cpu(Level::available()[0], 2), options))
}

fn layers(model: &str) -> usize {
    checkpoint::weights(&folder(model)).0.layers.len()
}

/// Stages of about the same number of layers, on the definitions and on every level in turn.
fn mixed(layers: usize, count: usize, first: usize) -> Vec<(usize, NewStage<'static>)> {
    let levels = Level::available();
    let stage = |index: usize| {
        let layers = layers * (index + 1) / count - layers * index / count;
        let on = match (first + index) % (levels.len() + 1) {
            0 => on(ScalarBackend),
            level => on(cpu(levels[level - 1], 1 + index % 2)),
        };
        (layers, on)
    };
    (0..count).map(stage).collect()
}

/// Rows that wanted few logits get from the head alone what a step gives that has all.
#[test]
fn the_head_alone_gives_the_logits_of_a_step() {
    for model in MODELS {
        let mut all = whole(model, options(CacheElement::F16, false));
        all.everything();
        assert!(all.heads.len() > 10);
        let ranked = options(CacheElement::F16, true);
        for level in Level::available() {
            let mut session = Session::new(transformer(folder(model), cpu(level, 2), ranked));
            session.everything();
            assert!(session.heads == all.heads, "{model}, {level:?}");
        }
        let count = layers(model).min(2);
        for piece_rows in [1, 4, 64] {
            let stages = stages(&folder(model), mixed(layers(model), count, piece_rows), ranked);
            let split = Split::new(stages.expect("stages")).expect("a model");
            let mut session = Session::new(split.with_piece_rows(piece_rows));
            session.everything();
            assert!(session.heads == all.heads, "{model}, pieces of {piece_rows}");
        }
    }
}

/// A part may have recurrent layers alone, or attention alone.
#[test]
fn recurrent_layers_are_split() {
    let (folder, options) = (fixture("families/qwen35-r1/hf"), options(CacheElement::F16, true));
    let whole = || transformer(&folder, cpu(Level::available()[0], 2), options);
    let expected = Session::new(whole()).everything();
    let text: Vec<u32> = (0..70).map(|index| index * 7 % 200).collect();
    let unmoved = Runner::over(Box::new(whole())).logits(&text, 40);
    assert!(after_a_move(Runner::over(Box::new(whole())), &text) == unmoved[40..]);
    for piece_rows in [1, 4, 64] {
        let split = || {
            let stages = stages(&folder, mixed(2, 2, piece_rows), options).expect("stages");
            Split::new(stages).expect("a model").with_piece_rows(piece_rows)
        };
        assert!(Session::new(split()).everything() == expected, "pieces of {piece_rows}");
        let moved = after_a_move(Runner::over(Box::new(split())), &text);
        assert!(moved == unmoved[40..], "pieces of {piece_rows}, after a move");
    }
}

/// Logits after 40 tokens, between which and the others the memory of another sequence is given back.
fn after_a_move(mut runner: Runner, text: &[u32]) -> Vec<Vec<f32>> {
    let (first, second) = (runner.sequence(), runner.sequence());
    runner.step(&[(first, &text[..3]), (second, &text[..40])]);
    runner.remove_and_compact(first);
    runner.step(&[(second, &text[40..])])
}

fn in_one_and_in_two() -> [Session; 2] {
    let (model, options) = (LAYERS[0], options(CacheElement::F16, true));
    let on_cpu = |layers| (layers, on(cpu(Level::available()[0], 1)));
    let two = [1, layers(model) - 1].map(on_cpu).into_iter().collect();
    let stages = stages(&folder(model), two, options).expect("stages");
    [whole(model, options), Session::new(Split::new(stages).expect("a model"))]
}

fn few() -> RequestedOutput {
    RequestedOutput::TopLogits(TopLogitsRequest { k: 1, ..<_>::default() })
}

/// What the head takes alone belongs to the step before it.
#[test]
fn a_profile_has_the_head_beside_the_step() {
    for mut session in in_one_and_in_two() {
        session.model.set_profiled(true);
        let sequence = session.cache.create();
        session.step(&[(sequence, &[1, 2], &few())]); // whose head runs twice alone
        let profile = session.model.profile().expect("a timed step");
        let calls = |name| {
            let ops = profile.ops.iter().filter(|op| op.name == name);
            ops.map(|op| op.calls).sum::<usize>()
        };
        assert_eq!((profile.steps, profile.rows), (1, 2));
        assert_eq!(["embed", "top_logits", "head"].map(calls), [1, 1, 2]);
        session.step(&[(sequence, &[3], &RequestedOutput::Logits)]);
        let profile = session.model.profile().expect("a timed step");
        assert_eq!((profile.steps, profile.rows, profile.candidates.len()), (1, 1, 0));
    }
}

#[test]
fn a_head_has_no_rows_but_those_that_the_last_step_ranked() {
    let refuses = |session: &mut Session, rows: &[usize]| {
        let mut outputs = Outputs::default();
        let found = pollster::block_on(session.model.head_logits(rows, &mut outputs));
        matches!(found, Err(ModelError::Ops(OpsError::Inputs { .. })))
    };
    let few = &few();
    for mut session in in_one_and_in_two() {
        assert!(refuses(&mut session, &[0]), "before a step");
        let sequence = session.cache.create();
        session.step(&[(sequence, &[1], few)]);
        assert!(refuses(&mut session, &[0, 1]));
        assert!(!refuses(&mut session, &[0]), "a refusal loses no row");
        session.step(&[(sequence, &[2], few)]);
        assert!(!refuses(&mut session, &[0]));
        session.step(&[(sequence, &[3], &RequestedOutput::Logits)]);
        assert!(refuses(&mut session, &[0]), "nothing was ranked");
    }
}

#[test]
fn every_model_in_two_stages() {
    for (index, model) in MODELS.into_iter().enumerate() {
        let count = layers(model).min(2);
        for element in [CacheElement::F32, CacheElement::F16, CacheElement::Int8] {
            let options = options(element, index % 2 == 0);
            let expected = whole(model, options).everything();
            let stages = stages(&folder(model), mixed(layers(model), count, index), options);
            let split = Split::new(stages.expect("stages")).expect("a model").with_piece_rows(16);
            assert!(Session::new(split).everything() == expected, "{model}, {element:?}");
        }
    }
}

#[test]
fn any_number_of_stages_and_rows_of_a_piece() {
    for model in LAYERS {
        let options = options(CacheElement::F16, true);
        let expected = whole(model, options).everything();
        let layers = layers(model);
        for (count, piece_rows) in [(1, 64), (2, 64), (2, 1), (3, 5), (3, 1000), (layers, 20)] {
            let stages = || stages(&folder(model), mixed(layers, count, piece_rows), options);
            let threads = Split::new(stages().expect("stages")).expect("a model");
            let in_turn = Split::in_turn(stages().expect("stages")).expect("a model");
            for split in [threads, in_turn] {
                let mut session = Session::new(split.with_piece_rows(piece_rows));
                for round in 0..2 {
                    let found = session.everything();
                    assert!(found == expected, "{model}, {count}, {piece_rows}, {round}");
                }
            }
        }
    }
}

#[test]
fn what_is_kept_is_the_sum_of_the_stages() {
    let model = LAYERS[1];
    let options = options(CacheElement::F16, true);
    let mut whole = whole(model, options);
    let stages = stages(&folder(model), mixed(layers(model), 3, 1), options).expect("stages");
    let mut split = Session::new(Split::new(stages).expect("a model"));
    for session in [&mut whole, &mut split] {
        session.everything();
    }
    let (whole, split) = (&whole.model, &split.model);
    assert_eq!(split.block_bytes(), whole.block_bytes());
    assert_eq!(split.vocab_size(), whole.vocab_size());
    assert_eq!(split.context_length(), whole.context_length());
    let (expected, found) = (whole.memory(), split.memory());
    assert_eq!(found.cache, expected.cache);
    assert_eq!(found.head, 2 * expected.head, "a tied table is at both ends");
    let (_, weights) = checkpoint::weights(&folder(model));
    let rope = weights.data[weights.layout.rope.0 as usize].bytes();
    assert_eq!(found.body, expected.body + 2 * rope);
}

#[test]
fn profiles_add_up() {
    let (model, options) = (LAYERS[1], options(CacheElement::F16, true));
    let on_cpu =
        |count| (0..count).map(move |_| (layers(model) / count, on(cpu(Level::available()[0], 1))));
    let stages = stages(&folder(model), on_cpu(2).collect(), options).expect("stages");
    let split = Split::new(stages).expect("a model").with_piece_rows(10);
    let profile = |mut session: Session| {
        session.model.set_profiled(true);
        assert!(session.model.profile().is_none());
        session.everything();
        let profile = session.model.profile().expect("a timed step").clone();
        session.model.set_profiled(false);
        session.everything();
        assert!(session.model.profile().is_none());
        profile
    };
    let (expected, found) = (profile(whole(model, options)), profile(Session::new(split)));
    assert_eq!((found.steps, found.rows), (1, 150));
    assert_eq!(found.layers, expected.layers);
    let calls = |profile: &setun::forward::Profile, name| {
        profile.ops.iter().filter(|op| op.name == name).map(|op| op.calls).sum::<usize>()
    };
    for name in ["embed", "attention", "gate", "ternary_matmul", "head"] {
        assert_eq!(calls(&found, name), 15 * calls(&expected, name), "{name}");
    }
}

#[test]
fn stages_that_are_no_whole_are_refused() {
    let model = LAYERS[0]; // of 3 layers
    let made = |cut: &[usize]| {
        let scalar = cut.iter().map(|&layers| (layers, on(ScalarBackend))).collect();
        stages(&folder(model), scalar, TransformerOptions::default())
    };
    for (cut, expected, found) in
        [(&[1, 1][..], 3, 2), (&[2, 2], 3, 4), (&[], 3, 0), (&[3, 0], 1, 0), (&[4], 3, 4)]
    {
        match made(cut).err() {
            Some(ModelError::Stages { expected: e, found: f, .. }) => {
                assert_eq!((e, f), (expected, found), "{cut:?}");
            }
            other => panic!("{cut:?}: {other:?}"),
        }
    }
    let refused = |stages| match Split::new(stages).err() {
        Some(ModelError::Stages { what, expected, found }) => (what, expected, found),
        other => panic!("{other:?}"),
    };
    let some = |skip| made(&[1, 2]).expect("stages").into_iter().skip(skip).collect::<Vec<_>>();
    assert_eq!(refused(some(1)), ("first layer of a stage", 0, 1));
    let mut turned = some(0);
    turned.reverse();
    assert_eq!(refused(turned), ("first layer of a stage", 0, 1));
    let mut first = some(0);
    first.pop();
    assert_eq!(refused(first), ("layers of all stages", 3, 1));
    assert_eq!(refused(vec![]).2, 0);
    let mut of_two = some(0);
    of_two.pop();
    let options = TransformerOptions { block_positions: 64, ..TransformerOptions::default() };
    let scalar = [1, 2].into_iter().map(|layers| (layers, on(ScalarBackend))).collect();
    of_two.extend(stages(&folder(model), scalar, options).expect("stages").pop());
    assert_eq!(refused(of_two), ("positions of a block", 32, 64));
}

#[test]
fn a_row_that_cannot_be_run_is_named() {
    let model = Golden::read(LAYERS[0]).folder;
    let options = TransformerOptions::default();
    let two = vec![(1, on(ScalarBackend)), (2, on(ScalarBackend))];
    let split = Split::new(stages(&model, two, options).expect("stages")).expect("a model");
    let mut session = Session::new(split);
    let sequence = session.cache.create();
    for _ in 0..2 {
        let batch =
            session.extend(&[(sequence, &[1 << 20], &setun::forward::RequestedOutput::Logits)]);
        let error = session.run(&batch).expect_err("no such token");
        let is_token = matches!(error, ModelError::Ops(OpsError::Inputs { what: "token", .. }));
        assert!(is_token, "{error}");
    }
}

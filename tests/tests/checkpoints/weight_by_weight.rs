//! Transformers whose weights come one by one.

use setun::{
    checkpoint::{CheckpointError, ModelConfig},
    forward::{
        LayerRange, Layout, ModelError, StageBuilder, Transformer, TransformerOptions, Weights,
    },
    ops::{OpsError, ScalarBackend, WeightData, WeightId},
};
use setun_tests::{
    checkpoint,
    golden::{Golden, MODELS},
    run::{Runner, bits},
};

const TOKENS: [u32; 5] = [1, 7, 3, 60, 2];

type Builder = StageBuilder<ScalarBackend>;

fn builder(config: ModelConfig, layout: &Layout) -> Builder {
    let (whole, options) = (LayerRange::whole(config.layers.len()), TransformerOptions::default());
    Builder::new(ScalarBackend, config, layout, whole, options).expect("options")
}

#[test]
fn any_order_gives_the_same_model() {
    for model in MODELS {
        let folder = Golden::read(model).folder;
        let (config, weights) = checkpoint::weights(&folder);
        let options = TransformerOptions::default();
        let whole = Transformer::new(ScalarBackend, config, weights, options).expect("a model");

        let mut given: Vec<(WeightId, WeightData)> = vec![];
        let (config, taken) = checkpoint::read(&folder, |weights| {
            given.extend(weights.take_ready());
            true
        });
        let (layout, unused) = taken.finish_taken().expect("all weights");
        assert_eq!(unused, Vec::<String>::new(), "{model}");
        let mut builder = builder(config, &layout);
        for (id, weight) in given.into_iter().rev() {
            builder.add(id, weight).expect("a weight");
        }
        let found = Transformer::from(builder.finish().expect("all weights"));

        let [expected, found] = [whole, found]
            .map(|model| bits(&Runner::over(Box::new(model)).logits(&TOKENS, TOKENS.len())));
        assert!(expected == found, "{model}");
    }
}

#[test]
fn a_weight_that_is_missing_or_wrong_is_named() {
    let (config, weights) = checkpoint::weights(&Golden::read(MODELS[0]).folder);
    let Weights { layout, data, .. } = weights;
    let last = WeightId(u32::try_from(data.len() - 1).expect("few weights"));
    let mut builder = builder(config, &layout);
    let wrong = |result: Result<(), ModelError>| match result {
        Err(ModelError::Ops(OpsError::Weight { id, .. })) => id,
        other => panic!("{other:?}"),
    };
    let vector = || WeightData::Vector(vec![0.0; 3]);
    assert_eq!(wrong(builder.add(WeightId(0), vector())), WeightId(0));
    assert_eq!(wrong(builder.add(WeightId(1 << 20), vector())), WeightId(1 << 20));
    for (id, weight) in (0..last.0).map(WeightId).zip(data) {
        builder.add(id, weight).expect("a weight");
    }
    assert_eq!(wrong(builder.finish().map(|_| ())), last);
}

#[test]
fn a_weight_that_never_came_is_named_whether_others_have_left_or_not() {
    let folder = Golden::read(MODELS[0]).folder;
    let missing = |result: Result<(), ModelError>| match result {
        Err(ModelError::Checkpoint(CheckpointError::MissingTensor { name, .. })) => name,
        other => panic!("{other:?}"),
    };
    let (_, none_left) = checkpoint::read(&folder, |_| true);
    assert!(!missing(none_left.finish_taken().map(drop)).is_empty());
    let (_, all_left) = checkpoint::read(&folder, |weights| {
        drop(weights.take_ready());
        true
    });
    assert!(!missing(all_left.finish().map(drop)).is_empty());

    let first = || {
        let mut tensors = 0;
        checkpoint::read(&folder, |_| {
            tensors += 1;
            tensors < 4
        })
    };
    let name = missing(first().1.finish().map(drop));
    assert!(name.contains("layers"), "{name}");
    let mut some_left = first().1;
    assert!(!some_left.take_ready().is_empty());
    assert_eq!(missing(some_left.finish_taken().map(drop)), name);
}

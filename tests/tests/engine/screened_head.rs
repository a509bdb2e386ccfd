//! A screened head chooses what a stored one does, on whole models, whatever the sampling.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use proptest::prelude::*;
use setun::{
    CacheType, Constraint, ConstraintState, CustomModel, Device, DeviceOptions, Engine,
    EngineError, GenerateOptions, GenerationStream, HeadType, Model, Prompt, SamplingStep,
    SharedConstraint, text::TokenMask,
};
use setun_tests::{
    fixture,
    forward_only::ForwardOnly,
    golden::{Golden, MODELS},
    long_or,
    run::devices,
};

/// A model with a tied table of floats and a vocabulary of some thousands.
const STORIES: &str = "golden/real-tinystories-1m";

/// One with more tokens than a mask may have to be requested one by one.
const EMBEDDED: &str = "../../crates/setun/embedded/stories.safetensors";
const VOCABULARY: usize = 4096;

fn engine(model: Model, device: Device, head: HeadType) -> Engine {
    let builder = Engine::builder(model).device(device).threads(2).head_type(head);
    builder.cache_type(CacheType::F32).build().expect("an engine")
}

/// Engines of one model with both heads.
fn both(open: impl Fn() -> Model) -> [Engine; 2] {
    let [stored, screened] =
        [HeadType::Stored, HeadType::Screened].map(|head| engine(open(), Device::Cpu, head));
    assert_eq!(screened.head_type(), HeadType::Screened);
    [stored, screened]
}

/// Engines of one model with a screened head, one for each device.
fn screened_on(devices: Vec<Device>, open: impl Fn() -> Model) -> Vec<(Device, Engine)> {
    let screened = |device: Device| {
        let engine = engine(open(), device.clone(), HeadType::Screened);
        assert_eq!(engine.head_type(), HeadType::Screened);
        (device, engine)
    };
    devices.into_iter().map(screened).collect()
}

fn stories() -> Model {
    Model::open(fixture(STORIES)).expect("the story model")
}

/// The tokens or the error of a generation, with its log-probabilities.
fn outcome(engine: &Engine, prompt: &[u32], options: GenerateOptions) -> Result<Vec<u32>, String> {
    let done = engine.complete(Prompt::Tokens(prompt.to_vec()), options);
    done.map(|done| done.tokens).map_err(|error| error.to_string())
}

/// Greedily, with penalties, biases and bans, with `top_k`, before a mirostat, too, with few tokens
/// that are allowed, with `min_p` alone, which often leaves more tokens than are ranked, with a
/// temperature alone, also where it is high or penalties come before or after it, with `top_p`
/// alone, and with filters that compare with the sum of all weights: hundreds of steps each.
fn sampling(seed: u64) -> Vec<GenerateOptions> {
    let options = GenerateOptions::new().max_tokens(250).seed(seed);
    vec![
        options.clone().temperature(0.0),
        options.clone().temperature(0.0).repetition_penalty(1.2),
        options.clone().temperature(1.1).top_k(40),
        options.clone().temperature(0.8).top_k(20).top_p(0.9).repetition_penalty(0.9),
        options.clone().temperature(1.0).min_p(0.05),
        options.clone().temperature(0.7).min_p(0.1).repetition_penalty(1.1),
        options.clone().temperature(2.0).min_p(0.001),
        options
            .clone()
            .temperature(0.0)
            .frequency_penalty(0.4)
            .no_repeat_ngram(4)
            .dry_multiplier(0.8)
            .logit_bias([(9, 1.5), (60, -3.0)])
            .min_tokens(100),
        options
            .clone()
            .temperature(1.2)
            .top_k(30)
            .typical_p(0.9)
            .mirostat_tau(3.0)
            .mirostat_eta(0.3),
        options.clone().temperature(0.9).top_p(0.9).allowed_tokens((5..40).collect()),
        options.clone().temperature(0.8),
        options.clone().temperature(0.8).top_p(0.95),
        options.clone().temperature(1.4).top_p(0.7).presence_penalty(0.4),
        options.clone().temperature(0.6).top_p(0.9).repetition_penalty(1.1).min_tokens(100),
        options.clone().temperature(1.0).repetition_penalty(1.2).no_repeat_ngram(3),
        options.clone().temperature(30.0).min_tokens(100),
        options
            .clone()
            .temperature(1.3)
            .frequency_penalty(0.4)
            .presence_penalty(0.3)
            .logit_bias([(9, 1.5), (60, -3.0)])
            .sampling_order([SamplingStep::FrequencyPenalty, SamplingStep::LogitBias]),
        options.clone().temperature(1.0).top_p(0.9).repetition_penalty(1.1),
        options.clone().temperature(1.0).typical_p(0.95),
        options.clone().temperature(1.2).epsilon_cutoff(0.002).presence_penalty(0.4),
        options.clone().temperature(0.9).eta_cutoff(0.004).logit_bias([(9, 1.5), (60, -3.0)]),
        options.temperature(0.8).top_p(0.95).min_p(0.02).typical_p(0.9).min_tokens(100),
    ]
}

/// What a stored head chooses has the same bits on every device.
#[test]
fn stories_are_the_same() {
    let stored = engine(stories(), Device::Cpu, HeadType::Stored);
    let prompt = stored.tokenize("Once upon a time").expect("tokens");
    let devices = devices().into_iter().filter(|device| *device != Device::Scalar);
    let screened = screened_on(devices.collect(), stories);
    for options in (0..long_or(2, 1)).flat_map(sampling) {
        let expected = outcome(&stored, &prompt, options.clone());
        assert!(expected.as_ref().is_ok_and(|tokens| tokens.len() > 20), "{expected:?}");
        for (device, screened) in &screened {
            let found = outcome(screened, &prompt, options.clone());
            assert_eq!(found, expected, "{options:?} on {device}");
        }
    }
}

#[test]
fn random_models_are_the_same_on_every_device() {
    for model in MODELS {
        let golden = Golden::read(model);
        let open = || Model::open(golden.folder.clone()).expect("a golden model");
        let stored = engine(open(), Device::Cpu, HeadType::Stored);
        let screened = screened_on(devices(), open);
        let prompts = ["p7", "p33"].map(|prompt| golden.ids(&format!("{prompt}.ids")));
        for (at, options) in sampling(1).into_iter().enumerate() {
            let options = options.max_tokens(long_or(40, 20));
            // Short of time, each way to sample has one of them.
            for prompt in &prompts[long_or(0, at % 2)..long_or(2, at % 2 + 1)] {
                let expected = outcome(&stored, prompt, options.clone());
                for (device, screened) in &screened {
                    let found = outcome(screened, prompt, options.clone());
                    assert_eq!(found, expected, "{options:?} of {model} on {device}");
                }
            }
        }
    }
}

/// A model that cannot go back, and for how many rows its head has run alone.
fn forward_only(model: &str, head: HeadType) -> (Engine, Arc<AtomicUsize>) {
    let options =
        DeviceOptions { head, threads: Some(2), cache: CacheType::F32, ..DeviceOptions::default() };
    let model = Model::open(fixture(model)).expect("a model");
    let eos_tokens = model.config().eos_tokens.clone();
    let model = ForwardOnly::new(model.load_onto(options).expect("a processor").model);
    let heads = model.heads();
    let model = CustomModel::new("stories", model).eos_tokens(eos_tokens);
    (Engine::builder(model).build().expect("an engine"), heads)
}

/// Two thirds of the tokens, others at each position.
#[derive(Clone)]
struct TwoThirds(u32, Option<TokenMask>);

impl Constraint for TwoThirds {
    fn begin(&self) -> Box<dyn ConstraintState> {
        Box::new(self.clone())
    }
}

impl ConstraintState for TwoThirds {
    fn mask(&mut self) -> Result<&TokenMask, EngineError> {
        let Self(position, mask) = self;
        Ok(mask.insert({
            let mut mask = TokenMask::none(VOCABULARY);
            let tokens = (0..).take(VOCABULARY).filter(|token| (token ^ *position) % 3 > 0);
            tokens.for_each(|token| mask.insert(token));
            mask
        }))
    }

    fn accept(&mut self, token: u32) -> Result<(), EngineError> {
        self.0 = self.0.wrapping_mul(31) + token;
        Ok(())
    }
}

/// Of each text.
const TOKENS: usize = 40;

/// Rows are undecided, sampled, filtered and constrained, alone and together: no position is
/// computed twice, and every text is that of all logits.
#[test]
fn a_model_that_cannot_go_back_has_the_same_texts() {
    let (stored, _) = forward_only(EMBEDDED, HeadType::Stored);
    let prompt = [405, 285, 260];
    let constrained =
        |options: GenerateOptions| options.constraint(SharedConstraint::new(TwoThirds(0, None)));
    let options = sampling(7).into_iter().flat_map(|options| {
        let options = options.max_tokens(TOKENS).min_tokens(TOKENS);
        [options.clone(), constrained(options)]
    });
    let options: Vec<_> = options.collect();
    let (alone, heads) = forward_only(EMBEDDED, HeadType::Screened);
    let mut expected = vec![];
    for options in &options {
        let texts = [&stored, &alone].map(|engine| outcome(engine, &prompt, options.clone()));
        assert_eq!(texts[0], texts[1], "{options:?}");
        expected.push(texts.into_iter().next());
    }
    let (alone_heads, rows) = (heads.load(Ordering::Relaxed), TOKENS * options.len());
    assert!((rows / 100..rows / 2).contains(&alone_heads), "{alone_heads} of {rows}");
    // Which of them meet in a step, and so which rows are undecided, is another each time.
    let (together, _) = forward_only(EMBEDDED, HeadType::Screened);
    let stream = |options| together.generate(Prompt::Tokens(prompt.to_vec()), options);
    let streams: Result<Vec<_>, _> = options.into_iter().map(stream).collect();
    for (stream, expected) in streams.expect("streams").into_iter().zip(expected) {
        let found = stream.wait().map(|done| done.tokens).map_err(|error| error.to_string());
        assert_eq!(Some(found), expected);
    }
}

/// Filters that compare with the sum of all weights seldom need them.
#[test]
fn few_rows_take_the_head_alone() {
    let stored = engine(stories(), Device::Cpu, HeadType::Stored);
    let (screened, heads) = forward_only(STORIES, HeadType::Screened);
    let prompt = stored.tokenize("Once upon a time").expect("tokens");
    let options = GenerateOptions::new().temperature(0.8).max_tokens(250).min_tokens(250);
    for options in [
        options.clone().top_p(0.95),
        options.clone().typical_p(0.95),
        options.clone().epsilon_cutoff(0.001),
        options.clone().eta_cutoff(0.001),
        options.top_p(0.95).min_p(0.01),
    ] {
        let rows = |engine: &Engine| {
            let count = || pollster::block_on(engine.metrics()).expect("metrics").rows;
            let before = count();
            let tokens = (0..4).map(|seed| outcome(engine, &prompt, options.clone().seed(seed)));
            let tokens: Vec<_> = tokens.collect();
            (tokens, count() - before)
        };
        let before = heads.load(Ordering::Relaxed);
        let ((expected, needed), (tokens, found)) = (rows(&stored), rows(&screened));
        assert_eq!(tokens, expected, "{options:?}");
        assert_eq!(found, needed, "no row is computed twice: {options:?}");
        let found = (heads.load(Ordering::Relaxed) - before) as u64;
        // Some do: all logits were not requested at once.
        let few = 1..needed / 25;
        assert!(few.contains(&found), "{found} of {needed} rows: {options:?}");
    }
}

#[test]
fn log_probabilities_come_from_all_logits() {
    let options = GenerateOptions::new().temperature(0.0).max_tokens(30).logprobs(true);
    let logprobs = both(stories).map(|engine| {
        let stream = engine.generate("One day", options.clone()).expect("a stream");
        let events = stream.blocking().map(|event| match event.expect("no error") {
            setun::Event::Text(delta) => Some(delta.logprob.expect("a log-probability").to_bits()),
            setun::Event::Progress(_) | setun::Event::Prompt(_) | setun::Event::Done(_) => None,
        });
        events.flatten().collect::<Vec<_>>()
    });
    assert_eq!(logprobs[0].len(), 30);
    assert_eq!(logprobs[0], logprobs[1]);
}

/// Streams with different wants share the steps of one model.
#[test]
fn mixed_batches_are_the_same() {
    let [stored, screened] = both(stories);
    let prompt = stored.tokenize("The dog").expect("tokens");
    let alone: Vec<_> =
        sampling(5).into_iter().map(|options| outcome(&stored, &prompt, options)).collect();
    let stream = |options| screened.generate(Prompt::Tokens(prompt.clone()), options);
    let streams: Result<Vec<_>, _> = sampling(5).into_iter().map(stream).collect();
    let wait = |stream: GenerationStream| std::thread::spawn(move || stream.wait());
    let threads: Vec<_> = streams.expect("streams").into_iter().map(wait).collect();
    for (thread, alone) in threads.into_iter().zip(alone) {
        let done = thread.join().expect("no panic").expect("no error");
        assert_eq!(Ok(done.tokens), alone);
    }
}

/// Samples of one prompt take their first tokens from one row, each with noise of its own.
#[test]
fn samples_are_the_same() {
    let [stored, screened] = both(stories);
    for seed in 0..4 {
        let options = GenerateOptions::new().max_tokens(12).seed(seed);
        for options in [options.clone().temperature(1.5), options.temperature(1.0).top_k(9)] {
            let samples = |engine: &Engine| {
                let streams = engine.generate_many("She saw a", options.clone(), 6);
                let tokens = |stream: GenerationStream| stream.wait().expect("a text").tokens;
                streams.expect("streams").into_iter().map(tokens).collect::<Vec<_>>()
            };
            let expected = samples(&stored);
            let first: BTreeSet<u32> = expected.iter().map(|tokens| tokens[0]).collect();
            assert!(first.len() > 2, "most begin with the same token: {expected:?}");
            assert_eq!(samples(&screened), expected, "{options:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_sampling(
        prompt in prop::collection::vec(0..263_u32, 1..20),
        temperature in prop_oneof![Just(0.0_f32), 0.2_f32..3.0],
        top_k in prop_oneof![Just(0_usize), 0..60_usize],
        top_p in prop_oneof![Just(1.0_f32), 0.5_f32..=1.0],
        min_p in prop_oneof![Just(0.0_f32), 0.001_f32..=1.0],
        penalty in prop_oneof![Just(1.0_f32), 0.5_f32..2.0],
        seed: u32,
    ) {
        let golden = Golden::read("bitnet-h64/packed");
        let open = || Model::open(golden.folder.clone()).expect("a golden model");
        let [stored, screened] = both(open);
        let options = GenerateOptions::new()
            .temperature(temperature)
            .top_k(top_k)
            .top_p(top_p)
            .min_p(min_p)
            .repetition_penalty(penalty)
            .seed(u64::from(seed))
            .max_tokens(30);
        let expected = outcome(&stored, &prompt, options.clone());
        prop_assert_eq!(outcome(&screened, &prompt, options), expected);
    }
}

//! Every key of a configuration does what it says.

use std::{thread, time::Duration};

use setun::{
    CacheType, Device, DeviceKind, Engine, EngineConfig, EngineMetrics, ErrorCode, Event,
    FinishReason, GenerateOptions, GpuApi, HeadType, Model, OperationTime, Verdict,
};

/// Positions in a block of the cache.
const BLOCK: usize = 32;

fn build(toml: &str) -> Result<Engine, setun::Error> {
    let config = EngineConfig::from_toml(toml)?;
    Engine::builder(Model::embedded()?).config(config).build()
}

fn engine(toml: &str) -> Engine {
    build(toml).expect(toml)
}

fn metrics(engine: &Engine) -> EngineMetrics {
    pollster::block_on(engine.metrics()).expect("an engine")
}

/// What was counted once that is so.
fn wait_for(engine: &Engine, is_so: impl Fn(&EngineMetrics) -> bool) -> EngineMetrics {
    loop {
        let metrics = metrics(engine);
        if is_so(&metrics) {
            return metrics;
        }
        thread::yield_now(); // the answer came from the scheduler, between two steps
    }
}

fn short() -> GenerateOptions {
    GenerateOptions::new().max_tokens(4).seed(1)
}

#[test]
fn a_batch_is_as_large_and_gathered_as_long_as_it_says() {
    let engine = engine("[batch]\nmax_concurrent = 2\nqueue = 1\nbatch_wait = 3600");
    let error = engine.generate_many("Once", short(), 3).expect_err("too many");
    assert_eq!(error.code(), ErrorCode::BadOption);
    let long = || GenerateOptions::new().min_tokens(200).max_tokens(200);
    let first = engine.generate("Once", long()).expect("a stream");
    let waiting = wait_for(&engine, |metrics| metrics.waiting == 1);
    assert_eq!((waiting.steps, waiting.running), (0, 0), "for another, an hour");
    let others = [(); 2].map(|()| engine.generate("Once", long()).expect("a stream"));
    wait_for(&engine, |metrics| (metrics.running, metrics.waiting) == (2, 1));
    let error = engine.generate("Once", short()).expect_err("two run and one waits");
    assert_eq!(error.code(), ErrorCode::Busy);
    drop((first, others));
}

#[test]
fn a_context_is_as_long_and_kept_as_it_says() {
    let kept = |toml: &str, prompt: usize| {
        let engine = engine(toml);
        engine.complete(vec![5; prompt], short()).expect("a text");
        (engine.context_length(), metrics(&engine))
    };
    let (length, told) = kept("[context]\ncontext_length = 100\ncontexts = 3", 90);
    assert_eq!((length, told.blocks), (100, 3 * 100_usize.div_ceil(BLOCK)));
    assert_eq!(told.cached_blocks, 90 / BLOCK);
    let (_, told) = kept("[context]\nprefix_positions = 0", 90);
    assert_eq!(told.cached_blocks, 0);
    let error = engine("[context]\ncontext_length = 100").generate(vec![5; 100], short());
    assert_eq!(error.expect_err("too long").code(), ErrorCode::ContextFull);
}

#[test]
fn the_first_device_that_is_here_runs() {
    let gpu = GpuApi::ALL.into_iter().find(|&api| !Device::Gpu(api).is_built());
    let gpu = gpu.expect("one that this build is without").name();
    let found = engine(&format!("[device]\nbackends = ['{gpu}', 'scalar', 'cpu']\nthreads = 1"));
    assert_eq!((found.level(), found.threads()), ("scalar", 1));
    let found = engine("[device]\nbackends = ['cpu']\nthreads = 2");
    assert_eq!(found.threads(), 2);
    let error = build(&format!("[device]\nbackends = ['{gpu}']")).expect_err("nothing is left");
    assert_eq!(error.code(), ErrorCode::BackendUnavailable);
}

#[test]
fn a_device_that_fails_is_reported() {
    let gpu = GpuApi::ALL.into_iter().find(|&api| !Device::Gpu(api).is_built()).expect("one");
    let builder = Engine::builder(Model::embedded().expect("a model")).device(Device::Gpu(gpu));
    let engine = builder.fallback(Device::Scalar).build().expect("the next one");
    assert_eq!(engine.level(), "scalar");
    let verdicts = &engine.device_report().devices;
    let failed = verdicts.iter().find(|found| found.verdict == Verdict::Failed);
    assert_eq!(failed.expect("the first one").device, DeviceKind::Gpu(gpu));
    assert_eq!(engine.device_report().warnings().count(), 1);
    engine.complete("Once", short()).expect("a text");
}

#[test]
#[cfg(target_os = "linux")]
fn the_cache_keeps_to_its_share_of_memory() {
    let contexts = "[context]\ncontexts = 1000000000\n[device]\nbackends = ['cpu']\n";
    let all = metrics(&engine(contexts));
    let told = metrics(&engine(&format!("{contexts}memory_fraction = 0.5")));
    let less = metrics(&engine(&format!("{contexts}memory_fraction = 0.25")));
    assert!(all.blocks > told.blocks && told.blocks > less.blocks);
    // What half the memory has more than a quarter is a quarter, in blocks; weights are the same.
    let quarter = told.blocks - less.blocks;
    let weights = quarter - less.blocks;
    assert!(weights < quarter / 10, "{quarter} {weights}");
    let error =
        build("[device]\nbackends = ['cpu']\nmemory_fraction = 1e-9").expect_err("too little");
    assert_eq!(error.code(), ErrorCode::BadOption);
    assert!(error.to_string().contains("for the weights and one context"), "{error}");
    let error = build("[device]\nbackends = ['scalar']\nmemory_fraction = 0.5");
    assert!(error.is_ok(), "the definitions have the same memory");
}

#[test]
fn memory_has_the_form_that_it_says() {
    let cache = |kind: &str| {
        let engine = engine(&format!("[memory]\ncache_type = '{kind}'\nhead_type = 'int8'"));
        engine.complete("Once", short()).expect("a text");
        assert_eq!(engine.head_type(), HeadType::Int8);
        pollster::block_on(engine.memory()).expect("an engine").cache
    };
    let [f32, f16, int8] = ["f32", "f16", "int8"].map(cache);
    assert!(f32 == 2 * f16 && int8 < f16, "{f32} {f16} {int8}");
    assert_eq!(EngineConfig::default().device.cache_type, CacheType::F16);
}

#[test]
fn activations_have_as_many_scales_as_it_says() {
    let logprobs = |toml: &str| {
        let text = engine(toml).complete("Once upon a time", short().logprobs(true));
        text.expect("a text").deltas.iter().map(|delta| delta.logprob).collect::<Vec<_>>()
    };
    let [row, narrow] =
        ["'row'", "32"].map(|group| logprobs(&format!("[memory]\nactivation_group = {group}")));
    assert_eq!(row, logprobs(""), "as it is trained");
    assert_ne!(row, narrow);
}

#[test]
fn a_stream_that_nobody_reads_pauses_or_ends() {
    let unread = |toml: &str| {
        let engine = engine(toml);
        let options = GenerateOptions::new().min_tokens(100).max_tokens(100);
        let stream = engine.generate("Once upon a time", options);
        (engine, stream.expect("a stream"))
    };
    let (paused, stream) = unread("[streams]\nbuffer = 5");
    wait_for(&paused, |metrics| metrics.tokens >= 5);
    for _ in 0..100 {
        let told = metrics(&paused); // there is a step between two answers, if there is anything to do
        assert_eq!((told.tokens, told.running), (5, 1), "it waits");
    }
    assert_eq!(stream.wait().expect("a text").tokens.len(), 100);

    let (ended, stream) = unread("[streams]\nbuffer = 5\nback_pressure = 'end'");
    wait_for(&ended, |metrics| metrics.aborted == 1);
    let events: Vec<_> = stream.blocking().map(|event| event.expect("no failure")).collect();
    let Some((Event::Done(done), texts)) = events.split_last() else { panic!("{events:?}") };
    assert_eq!((done.finish_reason, texts.len()), (FinishReason::Aborted, 5));
}

#[test]
fn a_generation_has_as_much_time_as_it_says() {
    let engine = engine("[generation]\ntimeout = 0");
    let reason = |options| engine.complete("Once", options).expect("an end").done.finish_reason;
    assert_eq!(reason(short()), FinishReason::Timeout);
    assert_eq!(reason(short().timeout(Duration::from_hours(1))), FinishReason::Length);
}

#[test]
fn generations_take_its_defaults() {
    let engine = engine(
        "[generation]\nmax_tokens = 7\ntemperature = 0.5\ntop_k = 3\ntop_p = 0.9\nmin_p = 0.01\n\
         repetition_penalty = 1.2\nseed = 11\nstop = ['dragon']",
    );
    let plain = Engine::builder(Model::embedded().expect("a model")).build().expect("a start");
    let same = GenerateOptions::new().max_tokens(7).temperature(0.5).top_k(3).top_p(0.9);
    let same = same.min_p(0.01).repetition_penalty(1.2).seed(11);
    let text = engine.complete("Once", GenerateOptions::new()).expect("a text");
    assert_eq!((text.done.seed, text.tokens.len()), (11, 7));
    assert_eq!(text.tokens, plain.complete("Once", same).expect("a text").tokens);
    let defaults = engine.sampling_defaults();
    assert_eq!((defaults.top_k, defaults.repetition_penalty), (3, 1.2));

    let other = GenerateOptions::new().max_tokens(3).temperature(0.0).seed(2);
    let found = engine.complete("Once", other.clone()).expect("a text");
    assert_eq!((found.done.seed, found.tokens.len()), (2, 3));

    let stopped = |options| engine.complete("Once upon a", options).expect("a text").done.stop;
    let long = GenerateOptions::new().max_tokens(200);
    let stop = EngineConfig::from_toml("[generation]\nstop = [' ']").expect("TOML");
    let stopping = Engine::builder(Model::embedded().expect("a model"));
    let stopping = stopping.config(stop).build().expect("a start");
    let found = stopping.complete("Once upon a", long.clone()).expect("a text");
    assert_eq!(found.done.stop.as_deref(), Some(" "));
    assert_eq!(stopped(long.stop([" "])).as_deref(), Some(" "), "in place of the configured one");
}

#[test]
fn steps_are_timed_from_the_start() {
    let timed = |toml: &str| {
        let engine = engine(toml);
        engine.complete("Once", short()).expect("a text");
        pollster::block_on(engine.end_profile()).expect("an engine")
    };
    assert_eq!(timed(""), None);
    let profile = timed("[monitoring]\nprofile = true").expect("a profile");
    assert_eq!((profile.decode.steps.steps, profile.timeline.steps().len()), (3, 0));
    let profile = timed("[monitoring]\ntimeline = true").expect("a profile");
    assert_eq!((profile.decode.steps.steps, profile.timeline.steps().len()), (3, 4));
}

/// Steps that were made ready without times are timed, and no longer, as is requested.
#[test]
fn times_of_operations_are_those_of_steps_and_change_no_text() {
    let long = GenerateOptions::new().max_tokens(60).temperature(1.0).seed(1);
    let engine = engine("[monitoring]\noperation_times = true");
    let text = engine.complete("Once", long.clone()).expect("a text").tokens;
    let EngineMetrics { operations, step_time, .. } = metrics(&engine);
    let sum = operations.iter().map(|time| time.prefill + time.decode).sum::<Duration>();
    let most = step_time.sum() + Duration::from_micros(1); // each share is rounded
    assert!(sum > Duration::ZERO && sum <= most, "{operations:?}");
    let phases = |name| operations.iter().filter(move |time| time.name == name);
    for name in ["attention", "gate", OperationTime::OTHER] {
        assert!(phases(name).all(|time| time.prefill.min(time.decode) > Duration::ZERO));
        assert_eq!(phases(name).count(), 1, "{operations:?}");
    }
    pollster::block_on(engine.start_profile()).expect("an engine");
    assert_eq!(engine.complete("Once", long.clone()).expect("a text").tokens, text);
    let profile = pollster::block_on(engine.end_profile()).expect("an engine").expect("steps");
    assert_eq!(profile.decode.steps.steps, text.len() - 1);
    assert_eq!(engine.complete("Once", long.clone()).expect("a text").tokens, text);
    assert_eq!(pollster::block_on(engine.end_profile()).expect("an engine"), None);
    let plain = self::engine("");
    assert_eq!(plain.complete("Once", long).expect("a text").tokens, text);
    assert_eq!(metrics(&plain).operations, []);
}

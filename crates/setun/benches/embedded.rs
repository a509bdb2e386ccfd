//! A decoded token of the embedded model beside its operations alone, with one thread:
//! `cargo bench -p setun --features embedded-model --bench embedded`.
//!
//! The engine tells a story greedily. Halfway through it each operation of a step is run many
//! times in a row, over what the operations before it have made, so that it finds its weights,
//! buffers and code in the caches. What a token takes beyond their sum is what they cost each
//! other there, and everything that is not an operation.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::{error::Error, time::Duration};

use setun::{Engine, GenerateOptions, Model};
use setun_cpu::{CpuBackend, CpuOptions, CpuWeight};
use setun_model::{
    BLOCK_POSITIONS, cache_spec,
    layout::Layout,
    plan::{HeadOutput, model_plan},
};
use setun_ops::{
    Backend, BatchInputs, BlockId, CacheElement, Op, Plan, Usage, host_cache::HostCache,
    op::Activation, plan::PlanBuilder, top_logits::TopLogitsRequest,
};

const PROMPT: &str = "Once upon a time";
const TOKENS: usize = 200;
const ROUNDS: usize = 9;

/// How often an operation is run in a step of its own, and how many such steps are run.
const REPEATS: usize = 32;
const STEPS: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let model = Model::embedded()?;
    let mut alone = Alone::new(&model)?;
    let engine = Engine::builder(model).threads(1).build()?;
    let options = GenerateOptions::new().temperature(0.0).repetition_penalty(1.0);
    let tell = || engine.generate(PROMPT, options.clone().max_tokens(TOKENS))?.wait();

    let story = tell()?;
    let mut tokens = engine.tokenize(PROMPT)?;
    tokens.extend(&story.tokens[..story.tokens.len() / 2]);
    alone.read(&tokens)?;

    let (mut whole, mut parts) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        whole.push(1.0 / tell()?.done.timings.tokens_per_second);
        parts.push(alone.times(&tokens)?);
    }
    let sums = parts.iter().map(|times| times.iter().sum::<Duration>().as_secs_f64()).collect();
    let (whole, sum) = (median(whole), median(sums));
    for (name, time) in by_name(&alone.plan, &parts) {
        println!("{name:14} {:8.1} µs", time * 1e6);
    }
    println!(
        "operations     {:8.1} µs, alone and hot, at position {}",
        sum * 1e6,
        tokens.len() - 1
    );
    println!(
        "a token        {:8.1} µs, of {} ({}): {:.2} times as much",
        whole * 1e6,
        story.tokens.len(),
        engine.level(),
        whole / sum
    );
    Ok(())
}

/// The median over rounds of what all operations of a name take.
fn by_name(plan: &Plan, rounds: &[Vec<Duration>]) -> Vec<(&'static str, f64)> {
    let mut names: Vec<&str> = plan.ops().iter().map(Op::name).collect();
    names.sort_unstable();
    names.dedup();
    let sum = |name: &str, times: &[Duration]| {
        let pairs = plan.ops().iter().zip(times).filter(|(op, _)| op.name() == name);
        pairs.map(|(_, time)| time.as_secs_f64()).sum::<f64>()
    };
    let of = |name| (name, median(rounds.iter().map(|times| sum(name, times)).collect()));
    names.into_iter().map(of).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The model's operations without an engine.
struct Alone {
    backend: CpuBackend,
    weights: Vec<CpuWeight>,
    cache: HostCache,
    plan: Plan,
}

impl Alone {
    fn new(model: &Model) -> Result<Self, Box<dyn Error>> {
        let (config, layout) = (model.config(), &model.weights().layout);
        let mut backend = CpuBackend::new(CpuOptions { level: None, threads: Some(1) })?;
        let usages = usages(layout, config.activation);
        let weights = model.weights().data.iter().cloned().zip(usages);
        let weights = weights.map(|(weight, usage)| backend.upload(weight, usage));
        let weights = weights.collect::<Result<_, _>>()?;
        // As an engine does it by default.
        let blocks = (BLOCK_POSITIONS, CacheElement::F16);
        let spec = cache_spec(config, 0..config.layers.len(), blocks, 0);
        let head = HeadOutput::TopLogits { capacity: 16 };
        let plan = model_plan(layout, config.activation, spec, (1, 1), head, true)?.plan;
        let cache = backend.create_cache(&spec, config.context_length.div_ceil(BLOCK_POSITIONS))?;
        Ok(Self { backend, weights, cache, plan })
    }

    /// Puts a text into the cache.
    fn read(&mut self, tokens: &[u32]) -> Result<(), Box<dyn Error>> {
        let mut step = self.backend.prepare(&self.plan, &self.weights)?;
        for position in 0..tokens.len() {
            self.backend.run(&mut step, &mut self.cache, &inputs(tokens, position)?)?;
        }
        Ok(())
    }

    /// What each operation takes for the last token of a text.
    fn times(&mut self, tokens: &[u32]) -> Result<Vec<Duration>, Box<dyn Error>> {
        let inputs = inputs(tokens, tokens.len() - 1)?;
        (0..self.plan.ops().len()).map(|op| self.time(op, &inputs)).collect()
    }

    /// The median of many runs in a row of an operation, after those before it.
    fn time(&mut self, op: usize, inputs: &BatchInputs) -> Result<Duration, Box<dyn Error>> {
        let ops = self.plan.ops();
        let mut plan = PlanBuilder::new(1, 1, self.plan.weights().to_vec(), *self.plan.cache());
        plan = plan.keep_buffers();
        for buffer in self.plan.buffers() {
            plan.buffer(buffer.kind, buffer.width, buffer.rows);
        }
        ops[..=op].iter().for_each(|op| plan.push(op.clone()));
        (0..REPEATS).for_each(|_| plan.push(ops[op].clone()));

        let (plan, mut inputs) = (plan.finish()?, inputs.clone());
        if plan.top_logits_limits().is_none() {
            inputs.top_logits.clear();
        }
        let mut step = self.backend.prepare(&plan, &self.weights)?;
        self.backend.time(&mut step, true);
        let mut times = vec![];
        for _ in 0..STEPS {
            self.backend.run(&mut step, &mut self.cache, &inputs)?;
            let taken = self.backend.times(&step).ok_or("a step that is not timed")?;
            times.extend_from_slice(&taken.ops[op + 1..]);
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }
}

/// What weights are for, as the model tells a backend.
fn usages(layout: &Layout, activation: Activation) -> Vec<Usage> {
    let mut usages = vec![Usage::General; layout.specs.len()];
    if activation == Activation::ReluSquared {
        for layer in &layout.layers {
            usages[layer.down.weight.0 as usize] = Usage::SparseInput;
        }
    }
    usages
}

/// A step for one token of a text, which wants the best token after it.
fn inputs(tokens: &[u32], position: usize) -> Result<BatchInputs, Box<dyn Error>> {
    let blocks = u32::try_from(tokens.len().div_ceil(BLOCK_POSITIONS))?;
    Ok(BatchInputs {
        tokens: vec![tokens[position]],
        positions: vec![u32::try_from(position)?],
        slots: vec![0],
        block_tables: vec![(0..blocks).map(BlockId).collect()],
        wanted: vec![0],
        top_logits: vec![TopLogitsRequest { k: 1, ..<_>::default() }],
        ..BatchInputs::default()
    })
}

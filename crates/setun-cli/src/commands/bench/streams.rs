//! Continuous batching against bare model steps: scheduling cost, recomputed rows, prefix sharing.

use std::time::Instant;

use serde::Serialize;
use setun::{
    Engine, Error, GenerateOptions, Model,
    forward::{Batch, Model as Forward, Outputs, PagedCache, RequestedOutput},
    ops::top_logits::TopLogitsRequest,
};

use super::{
    Args,
    round::{self, decode_median, median, speed},
    to_usize,
};
use crate::{
    args,
    error::CliError,
    output::{Output, Progress, titled},
};

/// Steps of which the median is taken, a round.
const STEPS: usize = 4;

/// Tokens of the beginning that prompts share in the last measurement.
const SHARED: usize = 1000;

/// Tokens of each prompt after it.
const TAIL: usize = 8;

/// Streams that share it.
const SHARING: usize = 8;

/// Medians for one number of streams.
#[derive(Debug, Serialize)]
struct Report {
    streams: usize,
    /// Of all streams together, greedy.
    decode_tokens_per_second: f64,
    /// Drawn at a temperature of 0.8.
    drawn_tokens_per_second: f64,
    /// Drawn at a temperature of 0.8 with a `top_p` of 0.95.
    sampled_tokens_per_second: f64,
    /// Rows of a prompt a second, as many a step as there are streams, whose next tokens are all
    /// wanted, greedy.
    prefill_rows_per_second: f64,
    /// The same where nothing is requested of them.
    headless_rows_per_second: f64,
    /// Rows that were computed, by those that the requests need, greedy.
    computed_by_needed: f64,
    /// The same with `top_p`: rows whose best logits do not decide are computed again.
    sampled_computed_by_needed: f64,
}

/// What streams that begin alike gave.
#[derive(Debug, Serialize)]
struct SharedReport {
    streams: usize,
    shared_tokens: usize,
    computed_rows: u64,
    /// If the beginning is computed once.
    needed_rows: usize,
}

/// Measures in turn: streams of an engine, and steps of the same model without one.
pub(super) fn run(args: &Args, streams: &[u32]) -> Result<(), CliError> {
    let most = streams.iter().copied().max().map_or(1, to_usize);
    let device = args.device.options(&args.memory)?;
    let mut steps = Steps::new(load(args)?.load_onto(device)?.model);
    let builder =
        args::builder(super::files(args)?.open()?, &args.device, &args.memory, most.max(SHARING))?;
    let engine = args::start(builder.max_concurrent(most.max(SHARING)))?;
    let mut reports = vec![];
    for &streams in streams {
        reports.push(measure(args, &engine, &mut steps, to_usize(streams))?);
    }
    let shared = share(&engine)?;
    let mut output = Output::new();
    if args.json {
        reports.iter().try_for_each(|report| output.json(report))?;
        return output.json(&shared);
    }
    output.line(&reports_table(&reports))?;
    let SharedReport { streams, shared_tokens, computed_rows, needed_rows } = shared;
    output.line(&format!(
        "{streams} streams that share {shared_tokens} tokens computed {computed_rows} rows; \
         {needed_rows} if those are computed once"
    ))
}

fn load(args: &Args) -> Result<Model, CliError> {
    super::files(args)?.load()
}

fn measure(
    args: &Args,
    engine: &Engine,
    steps: &mut Steps,
    streams: usize,
) -> Result<Report, CliError> {
    let (prompt, generate) = (to_usize(args.prompt), to_usize(args.generate));
    let prompts = round::prompts(engine.vocab_size(), prompt, streams);
    let greedy = || GenerateOptions::new().temperature(0.0);
    let sampled = |top_p| {
        let mut options = GenerateOptions::new().temperature(0.8).seed(1);
        options.top_p = Some(top_p);
        (options.top_k, options.min_p) = (Some(0), Some(0.0));
        options
    };
    let mut progress = Progress::new();
    let (mut plain, mut drawn, mut sums) = (vec![], vec![], vec![]);
    let (mut wanted, mut headless) = (vec![], vec![]);
    let (mut computed, mut sampled_computed) = (0.0, 0.0);
    // The warm-up.
    let counted = |options: &GenerateOptions| -> Result<f64, CliError> {
        engine.reset_prefix_cache()?;
        let before = pollster::block_on(engine.metrics())?.rows;
        round::pass(engine, &prompts, options, (generate, 0))?;
        let rows = pollster::block_on(engine.metrics())?.rows - before;
        Ok(ratio(rows, (streams * (prompt + generate - 1)) as u64))
    };
    for repeat in 0..=args.repeat {
        progress.show(|| format!("{streams} streams: {repeat} of {}", args.repeat));
        if repeat == 0 {
            computed = counted(&greedy())?;
            sampled_computed = counted(&sampled(0.95))?;
            steps.measure(streams, prompt)?;
            continue;
        }
        engine.reset_prefix_cache()?;
        let found = round::run_with(engine, &prompts, &greedy(), generate)?;
        engine.reset_prefix_cache()?;
        let one = round::run_with(engine, &prompts, &sampled(1.0), generate)?;
        engine.reset_prefix_cache()?;
        let other = round::run_with(engine, &prompts, &sampled(0.95), generate)?;
        let [all, none] = steps.measure(streams, prompt)?;
        plain.extend(found.decode_tokens_per_second);
        drawn.extend(one.decode_tokens_per_second);
        sums.extend(other.decode_tokens_per_second);
        wanted.push(all);
        headless.push(none);
    }
    Ok(Report {
        streams,
        decode_tokens_per_second: decode_median(plain)?,
        drawn_tokens_per_second: decode_median(drawn)?,
        sampled_tokens_per_second: decode_median(sums)?,
        prefill_rows_per_second: decode_median(wanted)?,
        headless_rows_per_second: decode_median(headless)?,
        computed_by_needed: computed,
        sampled_computed_by_needed: sampled_computed,
    })
}

/// Prompts that begin alike, at the same moment.
fn share(engine: &Engine) -> Result<SharedReport, CliError> {
    let shared_tokens = SHARED.min(engine.context_length().saturating_sub(TAIL + 1));
    let vocabulary = engine.vocab_size();
    let beginning = round::prompts(vocabulary, shared_tokens, 1).concat();
    let tails = round::prompts(vocabulary, TAIL + 1, SHARING).into_iter();
    let prompts: Vec<_> = tails.map(|tail| [&beginning[..], &tail[1..]].concat()).collect();
    engine.reset_prefix_cache()?;
    let before = pollster::block_on(engine.metrics())?.rows;
    round::pass(engine, &prompts, &GenerateOptions::new().temperature(0.0), (1, 0))?;
    let computed_rows = pollster::block_on(engine.metrics())?.rows - before;
    let needed_rows = shared_tokens + SHARING * TAIL;
    Ok(SharedReport { streams: SHARING, shared_tokens, computed_rows, needed_rows })
}

/// Steps of a prompt, without an engine.
struct Steps {
    model: Box<dyn Forward>,
    cache: PagedCache,
    outputs: Outputs,
}

impl Steps {
    fn new(model: Box<dyn Forward>) -> Self {
        let cache = PagedCache::for_model(&*model, u32::MAX as usize);
        Self { model, cache, outputs: Outputs::default() }
    }

    /// Rows a second after a prompt of `prompt` tokens, in steps of `rows` rows: with all next
    /// tokens wanted, and with none.
    fn measure(&mut self, rows: usize, prompt: usize) -> Result<[f64; 2], CliError> {
        let best =
            RequestedOutput::TopLogits(TopLogitsRequest { k: 1, ..TopLogitsRequest::default() });
        let mut speeds = [0.0; 2];
        for (wants, found) in [best, RequestedOutput::Nothing].into_iter().zip(&mut speeds) {
            let place = self.cache.create();
            self.step(place, prompt, &RequestedOutput::Nothing)?;
            let mut seconds = vec![];
            for _ in 0..STEPS {
                let begun = Instant::now();
                self.step(place, rows, &wants)?;
                seconds.push(begun.elapsed().as_secs_f64());
            }
            self.cache.remove(place);
            *found = median(seconds).and_then(|time| speed(rows, time)).unwrap_or(0.0);
        }
        Ok(speeds)
    }

    fn step(
        &mut self,
        place: setun::forward::SequenceId,
        rows: usize,
        wants: &RequestedOutput,
    ) -> Result<(), CliError> {
        let first = self.cache.len(place).map_err(Error::from)?;
        self.cache.extend(place, rows).map_err(Error::from)?;
        let tokens = round::prompts(self.model.vocab_size(), first + rows, 1).concat();
        let mut batch = Batch::default();
        batch.push_run(place, first, &tokens[first..], RequestedOutput::Nothing);
        batch.rows.iter_mut().for_each(|row| row.output = wants.clone());
        let forward = self.model.forward(&batch, &mut self.cache, &mut self.outputs);
        Ok(pollster::block_on(forward).map_err(Error::from)?)
    }
}

fn reports_table(reports: &[Report]) -> String {
    let title = [
        "streams",
        "greedy tokens/s",
        "of prefill",
        "temperature",
        "of greedy",
        "with top_p",
        "of greedy",
        "computed",
        "with top_p",
    ];
    let share = |part: f64, whole: f64| format!("{:.0} %", 100.0 * part / whole);
    let row = |report: &Report| {
        vec![
            report.streams.to_string(),
            format!("{:.1}", report.decode_tokens_per_second),
            share(report.decode_tokens_per_second, report.prefill_rows_per_second),
            format!("{:.1}", report.drawn_tokens_per_second),
            share(report.drawn_tokens_per_second, report.decode_tokens_per_second),
            format!("{:.1}", report.sampled_tokens_per_second),
            share(report.sampled_tokens_per_second, report.decode_tokens_per_second),
            format!("{:.3}", report.computed_by_needed),
            format!("{:.3}", report.sampled_computed_by_needed),
        ]
    };
    titled(title, reports.iter().map(row))
}

#[expect(clippy::cast_precision_loss, reason = "counts of rows")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

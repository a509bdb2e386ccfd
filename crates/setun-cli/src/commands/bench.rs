//! `setun bench`: speed of prefill and decode, beside what the memory could give.

mod bandwidth;
mod memory;
mod profile;
mod round;

use std::iter;

use clap::builder::RangedI64ValueParser;
use serde::Serialize;
use setun::{
    Device, DeviceOptions, Engine, Error, HeadType, Model,
    ops::{WeightData, WeightSpec, screen_dot::screen_bytes},
};

use crate::{
    args::{self, DeviceArgs, MemoryArgs},
    error::CliError,
    output::{Output, Progress, table},
    source::ModelSource,
    synth::{ShapeName, Synthetic},
};
use profile::ProfileReport;

/// Tokens that each sequence generates to warm up, after its whole prompt.
const WARM_UP: usize = 4;

/// Tokens that each sequence generates to tell what is read, where no profile is asked for.
const PROFILED: usize = 16;

/// Most tokens of a prompt, and most that are generated after it.
const MOST_TOKENS: i64 = 1 << 18;

/// Most repeats.
const MOST_REPEATS: i64 = 1000;

/// Most sequences at once.
const MOST_SEQUENCES: i64 = 256;

/// Most positions of all sequences together: what their caches are for.
const MOST_POSITIONS: u64 = 1 << 18;

/// Measure the speed of a model, or of a random one of a real shape
///
/// Prompts are random tokens; decoding is greedy, by the same engine that `setun run` uses. A
/// figure is the median of the repeats. `setun bench --shape 2b4t --threads 2 --batch 1,8` is a
/// good start.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A .safetensors file, or a folder in Hugging Face's layout [default: the embedded model]
    #[arg(long, value_name = "MODEL", conflicts_with = "shape")]
    model: Option<String>,

    /// A random model, made in memory as `setun synth` writes it
    #[arg(long, value_enum)]
    shape: Option<ShapeName>,

    /// Tokens of a prompt
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = count(MOST_TOKENS))]
    prompt: u32,

    /// Tokens that each sequence generates
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = count(MOST_TOKENS))]
    generate: u32,

    /// Sequences at once: one size, or several to be measured one after the other
    #[arg(long, value_name = "B", default_value = "1", value_delimiter = ',')]
    #[arg(value_parser = count(MOST_SEQUENCES))]
    batch: Vec<u32>,

    /// Repeats, after a warm-up
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = count(MOST_REPEATS))]
    repeat: u32,

    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    memory: MemoryArgs,

    /// Time every operation too, in a round of its own: prefill and decode apart
    #[arg(long)]
    profile: bool,

    /// Print one JSON object a line for each batch size instead of a table
    #[arg(long)]
    json: bool,
}

fn count(most: i64) -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=most)
}

/// What one batch size gave.
#[derive(Debug, Serialize)]
struct Report {
    backend: &'static str,
    level: &'static str,
    threads: usize,
    batch: usize,
    shape: String,
    head: &'static str,
    repeats: usize,
    /// Of all generated tokens, sequence by sequence.
    tokens_hash: String,
    /// All sequences together; the median.
    prefill_tokens_per_second: f64,
    /// All sequences together; the median. None where nothing was decoded after the first token.
    decode_tokens_per_second: Option<f64>,
    /// Bytes of weights that a decoded token makes the processor read: those of a step, shared
    /// by the sequences of the batch. What could not matter and was not read is left out, where
    /// the device tells (all but `scalar`).
    weight_bytes_per_token: u64,
    /// What memory gives the same threads, in 10⁹ bytes. None where there is not enough of it.
    read_bandwidth_gb_per_second: Option<f64>,
    /// None where the system does not tell.
    peak_rss_bytes: Option<u64>,
    /// None unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileReport>,
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    check(args)?; // before the work of loading
    let source = match args.shape {
        Some(shape) => ModelSource::Synthetic(Box::new(Synthetic::new(&shape.shape(), 0, None)?)),
        None => ModelSource::find(args.model.as_deref())?,
    };
    let batches: Vec<_> = args.batch.iter().map(|&batch| to_usize(batch)).collect();
    let contexts = batches.iter().copied().max().unwrap_or(1);
    let model = source.load()?;
    let options = DeviceOptions {
        device: args.device.device()?,
        head: args.memory.head(),
        ..DeviceOptions::default()
    };
    let step_bytes = bytes_of_a_step(&model, model.head_type(&options));
    let engine = args::start(model, &args.device, args.memory, contexts)?;

    let mut reports = vec![];
    for batch in batches {
        reports.push(measure(args, &engine, batch, step_bytes)?);
    }
    // Last, because its buffer would count as memory of the model's.
    let bandwidth = bandwidth::measure(engine.threads());
    for report in &mut reports {
        report.read_bandwidth_gb_per_second = bandwidth;
    }
    print(&reports, args.json)
}

/// Refuses what could not be measured.
fn check(args: &Args) -> Result<(), CliError> {
    if args.device.device()? == Device::Scalar && args.profile {
        return Err(profile::untimed(&args.device.backend));
    }
    let (prompt, generate) = (args.prompt, args.generate);
    for &batch in &args.batch {
        let positions = u64::from(batch) * (u64::from(prompt) + u64::from(generate));
        if positions > MOST_POSITIONS {
            return Err(CliError::Usage(format!(
                "--batch {batch} --prompt {prompt} --generate {generate}: {positions} positions \
                 together, expected at most {MOST_POSITIONS}"
            )));
        }
    }
    Ok(())
}

fn measure(
    args: &Args,
    engine: &Engine,
    batch: usize,
    step_bytes: u64,
) -> Result<Report, CliError> {
    let (prompt, generate) = (to_usize(args.prompt), to_usize(args.generate));
    let repeats = to_usize(args.repeat);
    let prompts = round::prompts(engine.vocab_size(), prompt, batch);
    let mut progress = Progress::new();
    progress.show(|| format!("batch {batch}: warming up"));
    round::run(engine, &prompts, generate.min(WARM_UP))?;
    let (mut prefill, mut decode, mut hash) = (vec![], vec![], String::new());
    for repeat in 1..=repeats {
        progress.show(|| format!("batch {batch}: {repeat} of {repeats}"));
        let round = round::run(engine, &prompts, generate)?;
        prefill.push(round.prefill_tokens_per_second);
        decode.extend(round.decode_tokens_per_second);
        hash = round.tokens_hash();
    }
    progress.show(|| format!("batch {batch}: profile"));
    let profiled = if args.profile { generate } else { generate.min(PROFILED) };
    let profile = profile::measure(engine, &prompts, (generate.min(WARM_UP), profiled))?;
    let read = profile.as_ref().and_then(ProfileReport::weight_bytes_per_token);
    Ok(Report {
        backend: engine.backend(),
        level: engine.level(),
        threads: engine.threads(),
        batch,
        shape: engine.model_name().to_owned(),
        head: engine.head_type().name(),
        repeats,
        tokens_hash: hash,
        prefill_tokens_per_second: median(prefill).ok_or(Error::Disposed)?,
        decode_tokens_per_second: median(decode),
        weight_bytes_per_token: read.unwrap_or(step_bytes / batch as u64).max(1),
        read_bandwidth_gb_per_second: None,
        peak_rss_bytes: memory::peak_rss_bytes(),
        profile: profile.filter(|_| args.profile),
    })
}

/// Bytes of weights that a step of one token reads: all matrices and the head (of a screened one
/// the screen), one row of the embedding and of the position table.
fn bytes_of_a_step(model: &Model, head: HeadType) -> u64 {
    let weights = model.weights();
    let (embedding, head_id) =
        (weights.layout.embedding.0 as usize, weights.layout.head.0 as usize);
    let is_screened = head == HeadType::Screened && weights.float_head().is_some();
    let bytes = |(index, data): (usize, &WeightData)| match data.spec() {
        WeightSpec::Dense { rows, columns } if index == head_id && head == HeadType::Int8 => {
            rows * (columns + size_of::<f32>())
        }
        WeightSpec::Dense { rows, columns } if index == head_id && is_screened => {
            screen_bytes(rows, columns)
        }
        WeightSpec::Dense { rows, .. } if index == embedding && index != head_id => {
            data.bytes() / rows.max(1)
        }
        WeightSpec::Rope { positions, .. } => data.bytes() / positions.max(1),
        _ => data.bytes(),
    };
    weights.data.iter().enumerate().map(bytes).sum::<usize>() as u64
}

fn print(reports: &[Report], json: bool) -> Result<(), CliError> {
    let mut output = Output::new();
    if json {
        return reports.iter().try_for_each(|report| output.json(report));
    }
    let Some(first) = reports.first() else { return Ok(()) };
    let head = first.memory_line();
    let title =
        ["batch", "prefill tokens/s", "decode tokens/s", "weight MB/token", "peak MB", "hash"];
    let rows: Vec<_> = iter::once(title.map(str::to_owned).to_vec())
        .chain(reports.iter().map(Report::row))
        .collect();
    output.line(&format!("{head}\n\n{}", table(&rows)))?;
    let profiled = reports.iter().filter_map(|report| Some((report, report.profile.as_ref()?)));
    profiled
        .map(|(report, profile)| format!("\nbatch {}\n{}", report.batch, profile.tables()))
        .try_for_each(|tables| output.line(&tables))
}

impl Report {
    fn memory_line(&self) -> String {
        let bandwidth = self
            .read_bandwidth_gb_per_second
            .map_or("memory not measured".into(), |gb| format!("memory gives {gb:.1} GB/s"));
        format!(
            "{} on {} ({}), {} threads; median of {}; {bandwidth}",
            self.shape, self.backend, self.level, self.threads, self.repeats
        )
    }

    fn row(&self) -> Vec<String> {
        let megabytes = |bytes: u64| format!("{}.{}", bytes / 1_000_000, bytes / 100_000 % 10);
        vec![
            self.batch.to_string(),
            format!("{:.1}", self.prefill_tokens_per_second),
            self.decode_tokens_per_second.map_or("-".into(), |speed| format!("{speed:.1}")),
            megabytes(self.weight_bytes_per_token),
            self.peak_rss_bytes.map_or("-".into(), megabytes),
            self.tokens_hash.clone(),
        ]
    }
}

/// The middle one, or the mean of the middle two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    let lower = if values.len().is_multiple_of(2) { values[middle - 1] } else { upper };
    Some(f64::midpoint(lower, upper))
}

fn to_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}

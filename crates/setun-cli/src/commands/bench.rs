//! `setun bench`: speed of prefill and decode.

mod bandwidth;
mod candidates;
mod compare;
mod known_draft;
mod memory;
mod peer;
mod report;
mod round;
mod streams;

use std::path::PathBuf;

use clap::builder::RangedI64ValueParser;
use setun::{
    Device, Engine, HeadType, ModelHeader,
    ops::{
        WeightSpec,
        screen_dot::screen_bytes,
        weight::{DenseKind, WeightKind},
    },
};

use crate::{
    args::{self, DeviceArgs, MemoryArgs, ModelArgs},
    commands::profile::{ProfileReport, untimed},
    error::CliError,
    output::Progress,
    source::ModelFiles,
    synth::{ShapeName, Synthetic},
};
use candidates::Candidates;
use memory::MemoryReport;
use peer::Peer;
use report::{Report, print};
use round::{Round, median};

/// Tokens that each sequence generates to warm up, after its whole prompt.
const WARM_UP: usize = 4;

/// Tokens that each sequence generates to report what is read, where no profile is requested.
const PROFILED: usize = 16;

/// Most tokens of a prompt, and most that are generated after it.
const MAX_TOKENS: i64 = 1 << 18;

/// Most repeats.
const MAX_REPEATS: i64 = 1000;

/// Most sequences at once.
const MAX_SEQUENCES: i64 = 256;

/// Most positions of all sequences together: what their caches are for.
const MAX_POSITIONS: u64 = 1 << 18;

/// Measure the speed of a model, or of random weights with a real shape
///
/// Prompts are random tokens, and decoding is greedy, with the engine of `setun run`. Each figure is
/// the median of the repeats. Example: `setun bench --shape 2b4t --threads 2 --batch 1,8`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,

    /// Random model of this shape, as written by `setun synth`
    #[arg(long, value_enum, conflicts_with = "model")]
    shape: Option<ShapeName>,

    /// Share of the random model's feed-forward gates that are closed for every token [default: half,
    /// at random]
    #[arg(long, value_name = "SHARE", value_parser = args::number(0.0, 1.0), requires = "shape")]
    closed: Option<f32>,

    /// Prompt tokens
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = count(MAX_TOKENS))]
    prompt: u32,

    /// Generated tokens per sequence
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = count(MAX_TOKENS))]
    generate: u32,

    /// Batch sizes, measured one after the other
    #[arg(long, value_name = "B", default_value = "1", value_delimiter = ',')]
    #[arg(value_parser = count(MAX_SEQUENCES), allow_hyphen_values = true)]
    batch: Vec<u32>,

    /// Measured rounds, after a warm-up
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = count(MAX_REPEATS))]
    repeat: u32,

    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    memory: MemoryArgs,

    /// Alternate with another engine's `llama-bench` and print ratios; repeatable
    #[arg(long, value_name = "NAME=PROGRAM")]
    peer: Vec<String>,

    /// GGUF model of a peer; one for each, in order
    #[arg(long, value_name = "FILE", requires = "peer")]
    peer_model: Vec<PathBuf>,

    /// Measure continuous batching with N streams against bare model steps, and prefix sharing
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = count(MAX_SEQUENCES))]
    #[arg(allow_hyphen_values = true, conflicts_with_all = ["batch", "peer", "peer_model", "profile"])]
    streams: Vec<u32>,

    /// Measure prompt lookup against plain decoding, on repetitive texts and an ordinary one; the
    /// model needs a tokenizer
    #[arg(long)]
    #[arg(conflicts_with_all = ["batch", "peer", "peer_model", "profile", "streams", "prompt"])]
    speculate: bool,

    /// With --speculate: measure drafts that are right this often, and nothing else; needs no
    /// tokenizer. Example: `setun bench --shape 2b4t --speculate --accept 0.6,0.8,0.95`
    #[arg(long, value_name = "RATE", value_delimiter = ',', value_parser = args::number(0.0, 1.0))]
    #[arg(requires = "speculate", conflicts_with = "draft")]
    accept: Vec<f32>,

    /// With --speculate: draft model to measure as well
    #[arg(long, value_name = "MODEL", requires = "speculate")]
    draft: Option<String>,

    /// Measure decoding under a JSON schema against plain decoding; the model needs a tokenizer
    #[arg(long)]
    #[arg(conflicts_with_all = ["batch", "peer", "peer_model", "profile", "streams", "shape", "prompt", "speculate"])]
    constrained: bool,

    /// Measure the read bandwidth of memory for comparison, of a GPU that of copies and its peak of
    /// integer products; takes 1.1 GB of memory, of a GPU up to 2.1 GB
    #[arg(long, conflicts_with_all = ["streams", "speculate", "constrained"])]
    bandwidth: bool,

    /// Time each operation in a separate round, for prefill and decode
    #[arg(long)]
    profile: bool,

    /// Print one JSON object per line in place of a table
    #[arg(long)]
    json: bool,
}

fn count(most: i64) -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=most)
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    check(args)?; // before the work of loading
    if !args.accept.is_empty() {
        return compare::known_drafts(args);
    }
    if args.speculate {
        return compare::speculation(args);
    }
    if args.constrained {
        return compare::constraint(args);
    }
    if !args.streams.is_empty() {
        return streams::run(args, &args.streams);
    }
    let mut peers = Peer::all(&args.peer, &args.peer_model)?;
    let reports = measure_batches(args, &mut peers)?;
    print(&reports, args.json)
}

/// All batch sizes, one after the other.
fn measure_batches(args: &Args, peers: &mut [Peer]) -> Result<Vec<Report>, CliError> {
    let batches: Vec<_> = args.batch.iter().map(|&batch| to_usize(batch)).collect();
    let contexts = batches.iter().copied().max().unwrap_or(1);
    let model = files(args)?.open()?;
    let options = args.device.options(&args.memory)?;
    let step_bytes = bytes_of_a_step(model.header(), model.header().head_type(&options));
    // Repeats compute all of their prompts again, and all sequences run at once.
    let builder = args::builder(model, &args.device, &args.memory, contexts)?;
    let engine = args::start(builder.prefix_positions(0).max_concurrent(contexts))?;

    let mut reports = vec![];
    for batch in batches {
        reports.push(measure(args, &engine, batch, step_bytes, peers)?);
    }
    // Last, because its buffer would count as memory of the model's, and once that is free.
    let (threads, device) = (engine.threads(), engine.backend());
    engine.close();
    if args.bandwidth {
        let (bandwidth, peak) = bandwidth::of_device(device, threads)?;
        for report in &mut reports {
            report.read_bandwidth_gb_per_second = bandwidth;
            report.peak_tera_operations_per_second = peak;
        }
    }
    Ok(reports)
}

/// The model, or the shape of one.
fn files(args: &Args) -> Result<ModelFiles, CliError> {
    match args.shape {
        Some(shape) => {
            args.model.check_no_file(shape.shape().name)?;
            let closed = args.closed.map(f64::from);
            Ok(ModelFiles::synthetic(Synthetic::new(&shape.shape(), 0, closed)?))
        }
        None => args.model.files(),
    }
}

/// Refuses what could not be measured.
fn check(args: &Args) -> Result<(), CliError> {
    if args.device.device()? == Device::Scalar && args.profile {
        return Err(untimed(args.device.backend()));
    }
    if args.speculate && args.accept.is_empty() && args.shape.is_some() {
        let what = "--speculate --shape: texts need a tokenizer; --accept measures without one";
        return Err(CliError::Usage(what.to_owned()));
    }
    let (prompt, generate) = (args.prompt, args.generate);
    for &batch in &args.batch {
        let positions = u64::from(batch) * (u64::from(prompt) + u64::from(generate));
        if positions > MAX_POSITIONS {
            return Err(CliError::Usage(format!(
                "--batch {batch} --prompt {prompt} --generate {generate}: {positions} positions \
                 together, expected at most {MAX_POSITIONS}"
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
    peers: &mut [Peer],
) -> Result<Report, CliError> {
    let generate = to_usize(args.generate);
    let prompts = round::prompts(engine.vocab_size(), to_usize(args.prompt), batch);
    let mut progress = Progress::new();
    progress.show(|| format!("batch {batch}: warming up"));
    round::run(engine, &prompts, generate.min(WARM_UP))?;
    let rounds = repeat(args, engine, &prompts, peers, &mut progress)?;
    let first = &rounds[0];
    let prefill = rounds.iter().map(|round| round.prefill_tokens_per_second).collect();
    let prefill = median(prefill).unwrap_or(first.prefill_tokens_per_second);
    let decode = rounds.iter().filter_map(|round| round.decode_tokens_per_second).collect();
    let decode = median(decode);

    progress.show(|| format!("batch {batch}: profile"));
    let profiled = if args.profile { generate } else { generate.min(PROFILED) };
    // Apart from the rounds that give the speeds, as timing takes time.
    pollster::block_on(engine.start_profile())?;
    round::run(engine, &prompts, generate.min(WARM_UP))?;
    pollster::block_on(engine.start_profile())?;
    let tokens = round::run(engine, &prompts, profiled)?.tokens;
    first.check("the round with timed operations", &tokens)?;
    let profile = pollster::block_on(engine.end_profile())?;
    let timed = profile.as_ref().map(ProfileReport::of);
    let read = timed.as_ref().and_then(ProfileReport::weight_bytes_per_token);
    let peak_rss_bytes = memory::peak_rss_bytes();
    Ok(Report {
        backend: engine.backend(),
        level: engine.level().to_owned(),
        threads: engine.threads(),
        batch,
        shape: engine.model_name().to_owned(),
        head: engine.head_type().name(),
        repeats: rounds.len(),
        tokens_hash: first.tokens_hash(),
        first_tokens_hash: first.first_tokens_hash(),
        prefill_tokens_per_second: prefill,
        decode_tokens_per_second: decode,
        weight_bytes_per_token: read.unwrap_or(step_bytes / batch as u64).max(1),
        read_bandwidth_gb_per_second: None,
        peak_tera_operations_per_second: None,
        peak_rss_bytes,
        memory: MemoryReport::new(&pollster::block_on(engine.memory())?, peak_rss_bytes),
        candidates: profile.and_then(|profile| Candidates::of(&profile.decode.steps)),
        peers: peers.iter_mut().map(|peer| peer.report(prefill, decode)).collect(),
        profile: timed.filter(|_| args.profile),
    })
}

/// The rounds that are measured, in turn with those of the peers. All give the same tokens.
fn repeat(
    args: &Args,
    engine: &Engine,
    prompts: &[Vec<u32>],
    peers: &mut [Peer],
    progress: &mut Progress,
) -> Result<Vec<Round>, CliError> {
    let (prompt, generate) = (to_usize(args.prompt), to_usize(args.generate));
    let mut rounds: Vec<Round> = vec![];
    for repeat in 1..=args.repeat {
        progress.show(|| format!("batch {}: {repeat} of {}", prompts.len(), args.repeat));
        let round = round::run(engine, prompts, generate)?;
        if let Some(first) = rounds.first() {
            first.check("a repeat", &round.tokens)?;
        }
        rounds.push(round);
        for peer in &mut *peers {
            peer.measure(engine.threads(), prompt, generate)?;
        }
    }
    Ok(rounds)
}

/// Bytes of weights that a step of one token reads: all matrices and the head (of a screened one
/// the screen), one row of the embedding and of the position table.
fn bytes_of_a_step(model: &ModelHeader, head: HeadType) -> u64 {
    let (layout, kinds) = (model.layout(), model.kinds());
    let (embedding, head_id) = (layout.embedding.0 as usize, layout.head.0 as usize);
    let is_float =
        |kind| matches!(kind, WeightKind::Dense(DenseKind::F32 | DenseKind::F16 | DenseKind::Bf16));
    let bytes = |(index, (&spec, &kind)): (usize, (&WeightSpec, &WeightKind))| match spec {
        WeightSpec::Dense { rows, columns } if index == head_id && head == HeadType::Int8 => {
            WeightKind::Dense(DenseKind::Int8Rows).bytes(WeightSpec::Dense { rows, columns })
        }
        WeightSpec::Dense { rows, columns }
            if index == head_id && head == HeadType::Screened && is_float(kind) =>
        {
            screen_bytes(rows, columns) as u64
        }
        WeightSpec::Dense { rows, .. } if index == embedding && index != head_id => {
            kind.bytes(spec) / rows.max(1) as u64
        }
        WeightSpec::Rope { positions, .. } => kind.bytes(spec) / positions.max(1) as u64,
        _ => kind.bytes(spec),
    };
    layout.specs.iter().zip(kinds).enumerate().map(bytes).sum()
}

fn to_usize(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

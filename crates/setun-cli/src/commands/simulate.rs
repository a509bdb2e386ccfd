//! `setun simulate`: routing policies over simulated servers.

mod report;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args as ClapArgs;
use setun_simulate::{
    BLOCK_TOKENS, Limits, LostReplica, MAX_REPLICAS, Options, Policy, Report, Request,
    SimulateError, StepCosts, TraceKind, TraceOptions, generate, plot, read, simulate, write,
};

use crate::{
    args::number,
    destination::{check_export, export},
    error::CliError,
    input,
    output::Progress,
};

/// Most requests of a trace that is made up.
const MAX_REQUESTS: i64 = 1_000_000;

/// Most turns of a conversation on average; each has the whole conversation.
const MAX_TURNS: i64 = 200;

/// Most tokens of a cache.
const MAX_CACHE: i64 = 1 << 30;

/// Most of other counts.
const MAX_COUNT: i64 = 1 << 20;

/// Requests a replica and requests a second for each, where a trace is made up.
const REQUESTS: u32 = 200;
const RATE: f64 = 0.3;

/// Simulate servers behind a load balancer, for a choice of its policy (docs/simulate.md)
///
/// Prints the cached share of the prompts, the time to the first token and the imbalance for each
/// policy and number of replicas. The same arguments give the same bytes. Example:
/// `setun simulate --replicas 3,10 --trace conversations --cache 16384`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Numbers of replicas, simulated one after the other
    #[arg(long, value_name = "N", default_value = "1,3,10,100", value_delimiter = ',')]
    #[arg(value_parser = count(i64::from(MAX_REPLICAS)), allow_hyphen_values = true)]
    replicas: Vec<u32>,

    /// Policies [default: all]: round-robin, least-load, hash, bounded-hash, index
    #[arg(long, value_name = "POLICY", value_delimiter = ',', value_parser = policy)]
    policy: Vec<Policy>,

    /// Requests: conversations, prompts, bursts, or a file of JSON lines; `-` is standard input
    #[arg(long, value_name = "TRACE", default_value = "conversations")]
    trace: String,

    #[command(flatten)]
    made_up: MadeUpArgs,

    /// Tokens that the cache of a replica has room for: `contexts` times `context_length`
    #[arg(long, value_name = "TOKENS", default_value_t = 32_768, value_parser = clap::value_parser!(u32).range(i64::from(BLOCK_TOKENS)..=MAX_CACHE))]
    cache: u32,

    /// Of these, tokens that are kept of prompts when no request has them: `prefix_positions`
    /// [default: all]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(0..=MAX_CACHE))]
    prefix: Option<u32>,

    /// Requests that a replica runs at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = count(i64::from(setun_simulate::MAX_ROWS)))]
    max_concurrent: u32,

    /// Most open requests of a replica with bounded-hash, in percent of the mean
    #[arg(long, value_name = "PERCENT", default_value_t = 150, value_parser = clap::value_parser!(u32).range(101..=MAX_COUNT))]
    factor: u32,

    /// Clients that send the requests of a trace in its order, each after its last answer, whatever
    /// their times are [default: each request at its time]
    #[arg(long, value_name = "N", value_parser = count(MAX_COUNT))]
    open: Option<u32>,

    /// The replies in later prompts are other tokens than those that were generated
    #[arg(long)]
    other_replies: bool,

    /// Replica that is lost, by its number from 0 on, and when, in seconds: `2@60`
    #[arg(long, value_name = "REPLICA@SECONDS", value_parser = lost)]
    lose: Option<LostReplica>,

    /// Measured times of steps: 2b4t, stories, or a file of JSON
    #[arg(long, value_name = "COSTS", default_value = "2b4t")]
    costs: String,

    /// Seed of the trace that is made up, of places on the ring, and of choices between equal replicas
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Print one JSON object per line in place of a table
    #[arg(long)]
    json: bool,

    /// Draw the results: all into one file, or each number of replicas into a file of a folder that is
    /// there
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,

    /// Write the trace; of several numbers of replicas that of the last
    #[arg(long, value_name = "FILE")]
    write_trace: Option<PathBuf>,

    /// Overwrite files that are there already
    #[arg(long)]
    force: bool,
}

/// What a made-up trace is like.
#[derive(Debug, ClapArgs)]
struct MadeUpArgs {
    /// Requests of the trace [default: 200 a replica]
    #[arg(long, value_name = "N", value_parser = count(MAX_REQUESTS))]
    requests: Option<u32>,

    /// Requests a second
    #[arg(long, value_name = "R", conflicts_with = "rate_per_replica", value_parser = number(f32::MIN_POSITIVE, 1e6))]
    rate: Option<f32>,

    /// Requests a second for each replica [default: 0.3]
    #[arg(long, value_name = "R", value_parser = number(f32::MIN_POSITIVE, 1e6))]
    rate_per_replica: Option<f32>,

    /// System prompts, of which the first is used most (Zipf's law) [default: 50]
    #[arg(long, value_name = "N", value_parser = count(MAX_COUNT))]
    system_prompts: Option<u32>,

    /// Mean tokens of a system prompt [default: 400]
    #[arg(long, value_name = "TOKENS", value_parser = count(MAX_COUNT))]
    system_tokens: Option<u32>,

    /// Mean turns of a conversation [default: 5]
    #[arg(long, value_name = "N", value_parser = count(MAX_TURNS))]
    turns: Option<u32>,

    /// Mean tokens of a message [default: 60]
    #[arg(long, value_name = "TOKENS", value_parser = count(MAX_COUNT))]
    message_tokens: Option<u32>,

    /// Mean tokens of a reply [default: 40]
    #[arg(long, value_name = "TOKENS", value_parser = count(MAX_COUNT))]
    output: Option<u32>,
}

fn count(most: i64) -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=most)
}

fn policy(text: &str) -> Result<Policy, String> {
    let expected = || format!("expected {}", Policy::ALL.map(Policy::name).join(", "));
    text.parse().map_err(|_| expected())
}

fn lost(text: &str) -> Result<LostReplica, String> {
    let read = || {
        let (replica, seconds) = text.split_once('@')?;
        let time = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
        let at_ms = u64::try_from(time.as_millis()).ok()?;
        Some(LostReplica { replica: replica.parse().ok()?, at_ms })
    };
    read().ok_or_else(|| "expected a replica and seconds, such as 2@60".to_owned())
}

/// See [`Args`].
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let source = args.source()?;
    let costs = args.costs()?;
    args.check(&source)?;
    let (mut reports, mut progress) = (vec![], Progress::new());
    for (number, &replicas) in args.replicas.iter().enumerate() {
        let made;
        let trace = match &source {
            Source::Read(trace) => trace,
            Source::MadeUp(kind) => {
                made = generate(*kind, &args.made_up.options(replicas, args.seed))
                    .map_err(|error| usage(&error))?;
                &made
            }
        };
        for policy in args.policies() {
            progress.show(|| format!("{replicas} replicas, {policy}"));
            let options = args.options(replicas, policy, &costs);
            reports.push(simulate(trace, &options).map_err(|error| usage(&error))?);
        }
        if let Some(path) =
            args.write_trace.as_deref().filter(|_| number + 1 == args.replicas.len())
        {
            put(path, args.force, &write(trace))?;
        }
    }
    drop(progress);
    args.draw(&reports)?;
    report::print(&reports, &costs, args.json)
}

/// Where requests come from.
enum Source {
    MadeUp(TraceKind),
    Read(Vec<Request>),
}

impl Args {
    fn source(&self) -> Result<Source, CliError> {
        let kind = match self.trace.as_str() {
            "conversations" => TraceKind::Conversations,
            "prompts" => TraceKind::Prompts,
            "bursts" => TraceKind::Bursts,
            file => {
                let text = input::file(Path::new(file))?;
                let trace = read(&text);
                let trace = trace.map_err(|error| CliError::Usage(format!("`{file}`: {error}")))?;
                return Ok(Source::Read(trace));
            }
        };
        Ok(Source::MadeUp(kind))
    }

    fn costs(&self) -> Result<StepCosts, CliError> {
        match self.costs.as_str() {
            "2b4t" => Ok(StepCosts::bitnet_2b4t()),
            "stories" => Ok(StepCosts::stories()),
            file => {
                let costs = StepCosts::read(&input::file(Path::new(file))?);
                costs.map_err(|error| CliError::Usage(format!("`{file}`: {error}")))
            }
        }
    }

    /// Refuses what would fail, or have no effect, before the work.
    fn check(&self, source: &Source) -> Result<(), CliError> {
        if let (Source::Read(_), Some(flag)) = (source, self.made_up.given()) {
            let trace = &self.trace;
            return Err(CliError::Usage(format!("{flag} has no effect on the trace `{trace}`")));
        }
        let least = self.replicas.iter().copied().min().unwrap_or(1);
        if let Some(lost) = self.lose
            && (least == 1 || lost.replica >= least)
        {
            let LostReplica { replica, .. } = lost;
            let why = match least {
                1 => "no replica would be left of 1".to_owned(),
                _ => format!("expected a replica from 0 to {} of {least}", least - 1),
            };
            return Err(CliError::Usage(format!("--lose {replica}@…: {why}")));
        }
        if self.prefix.is_some_and(|prefix| prefix > self.cache) {
            let what = format!("--prefix: expected at most --cache {}", self.cache);
            return Err(CliError::Usage(what));
        }
        let files = self.drawings().into_iter().chain(self.write_trace.clone());
        files.into_iter().try_for_each(|file| check_export(&file, self.force))
    }

    fn policies(&self) -> Vec<Policy> {
        if self.policy.is_empty() { Policy::ALL.to_vec() } else { self.policy.clone() }
    }

    fn options(&self, replicas: u32, policy: Policy, costs: &StepCosts) -> Options {
        let prefix = self.prefix.unwrap_or(self.cache);
        let Self { cache, max_concurrent, factor, open, other_replies, lose, seed, .. } = *self;
        let limits = Limits { cache, prefix, max_concurrent };
        let costs = costs.clone();
        Options { replicas, policy, limits, costs, factor, open, other_replies, lose, seed }
    }

    /// The files of pictures.
    fn drawings(&self) -> Vec<PathBuf> {
        let Some(path) = &self.svg else { return vec![] };
        if !path.is_dir() {
            return vec![path.clone()];
        }
        self.replicas.iter().map(|count| path.join(format!("replicas-{count}.svg"))).collect()
    }

    fn draw(&self, reports: &[Report]) -> Result<(), CliError> {
        let files = self.drawings();
        if let [file] = &files[..] {
            return put(file, self.force, &plot(reports));
        }
        let each = reports.chunks(self.policies().len());
        files.iter().zip(each).try_for_each(|(file, reports)| put(file, self.force, &plot(reports)))
    }
}

impl MadeUpArgs {
    /// The trace for a number of replicas.
    fn options(&self, replicas: u32, seed: u64) -> TraceOptions {
        let each = self.rate_per_replica.map_or(RATE, f64::from);
        let default = TraceOptions::default();
        TraceOptions {
            requests: self.requests.unwrap_or(REQUESTS * replicas),
            rate: self.rate.map_or(each * f64::from(replicas), f64::from),
            system_prompts: self.system_prompts.unwrap_or(default.system_prompts),
            system_tokens: self.system_tokens.unwrap_or(default.system_tokens),
            turns: self.turns.unwrap_or(default.turns),
            message_tokens: self.message_tokens.unwrap_or(default.message_tokens),
            output: self.output.unwrap_or(default.output),
            seed,
        }
    }

    /// A flag that was given.
    fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--requests", self.requests.is_some()),
            ("--rate", self.rate.is_some()),
            ("--rate-per-replica", self.rate_per_replica.is_some()),
            ("--system-prompts", self.system_prompts.is_some()),
            ("--system-tokens", self.system_tokens.is_some()),
            ("--turns", self.turns.is_some()),
            ("--message-tokens", self.message_tokens.is_some()),
            ("--output", self.output.is_some()),
        ];
        flags.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }
}

fn put(path: &Path, force: bool, text: &str) -> Result<(), CliError> {
    let failed = |source| CliError::Write { path: path.to_owned(), source };
    export(path, force, |file| file.write_all(text.as_bytes()).map_err(failed))
}

fn usage(error: &SimulateError) -> CliError {
    CliError::Usage(error.to_string())
}

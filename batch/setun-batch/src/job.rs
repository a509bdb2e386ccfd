//! `setun batch run` and `setun batch status`: a table of prompts becomes files of results, across restarts.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use clap::Args as ClapArgs;
use serde_json::{Map, Value};
use setun_cli::{
    CliError, EngineArgs, input, interrupt,
    output::{Output, Progress, counted, report},
};
use setun_sql::{
    BatchJob, BatchStatus, ChunkEntry, Conversation, Workers, batch_status, progress_words,
    run_batch,
};
use tokio::{sync::oneshot, time::timeout};

#[cfg(feature = "cluster")]
use crate::cluster::ClusterArgs;
use crate::{
    answers::model,
    queries::{failed, runtime},
    sql::INTERVAL,
};

/// Run a job, or go on with it
///
/// Each row of the input gets a text. The rows are cut into chunks; each chunk's results are a Parquet
/// file with the columns of the input and a column `result`. The manifest in the output names the files
/// that are done. The same command after an interruption does what is missing.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// File or folder, here or in an object store: Parquet, CSV, JSON lines or Arrow
    #[arg(long = "in", value_name = "PATH")]
    input: String,

    /// Folder for the results, here or in an object store
    #[arg(long, value_name = "PATH")]
    out: String,

    /// Column with the prompt
    #[arg(long, value_name = "COLUMN", required_unless_present_any = WITHOUT_PROMPT)]
    prompt: Option<String>,

    /// Column with the messages of a conversation, as a JSON array
    #[arg(long, value_name = "COLUMN", conflicts_with = "prompt")]
    messages: Option<String>,

    /// The input has requests of `OpenAI`'s batch API, a JSON object a line, and the results are answers
    ///
    /// A request is for `/v1/chat/completions`, `/v1/completions`, `/v1/embeddings` or `/v1/responses`; its
    /// `model` is not read. Its key is the `custom_id`.
    #[arg(long, conflicts_with_all = ["prompt", "messages", "key", "options", "schema"])]
    requests: bool,

    /// Column with the key of each row, from which its seed follows [default: the prompt]
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,

    /// Options of all texts, such as `{"max_tokens": 100}` (docs/sql.md)
    #[arg(long, value_name = "JSON")]
    options: Option<String>,

    /// File with a JSON schema that all texts follow
    #[arg(long, value_name = "FILE")]
    schema: Option<String>,

    /// Seed of the job; that of a row is a hash of it and the row's key
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Most rows of a chunk
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    chunk_rows: u32,

    /// About how many rows an executor of a cluster takes at once
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "N", default_value_t = SHARD_ROWS, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    shard_rows: u32,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    cluster: ClusterArgs,

    #[command(flatten)]
    engine: EngineArgs,
}

/// What stands for a prompt.
const WITHOUT_PROMPT: [&str; 2] = ["messages", "requests"];

/// Rows for an executor: a few times as many as an engine runs at once.
const SHARD_ROWS: u32 = 256;

/// Show how far a job is, by its manifest alone
#[derive(Debug, ClapArgs)]
pub(crate) struct StatusArgs {
    /// Folder of the results
    #[arg(long, value_name = "PATH")]
    out: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// See [`RunArgs`].
pub(crate) fn run(args: RunArgs) -> Result<(), CliError> {
    args.engine.check()?;
    let job = args.job()?;
    let workers = args.workers()?;
    let (stop, stopped) = oneshot::channel();
    let _guard = interrupt::on_signal(move || _ = stop.send(()));
    let progress = JobProgress { begun: Instant::now(), now: Mutex::default() };
    let report_status = |now: &BatchStatus| progress.record(now);
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let ended = run_batch(&job, &workers, report_status);
        tokio::select! {
            ended = ended => ended.map(Some).map_err(failed),
            () = progress.show(&workers) => Ok(None),
            _ = stopped => Ok(None),
        }
    });
    let last = progress.now().take().map(|(_, status)| status);
    // A load that was interrupted is not waited for. Files that are being written are: they count.
    runtime.shutdown_timeout(if last.is_some() { ENDING } else { Duration::ZERO });
    if let Some(status) = ended? {
        return Output::new().line(&summary(&status));
    }
    if let Some(last) = last {
        let found = self::runtime()?.block_on(async {
            #[cfg(feature = "cluster")]
            if matches!(workers, Workers::Cluster(_)) {
                // A store that does not answer is not waited for.
                let _ended = timeout(TAKING_AWAY, setun_sql::end_attempts(&job.output)).await;
            }
            timeout(ENDING, batch_status(&job.output)).await
        });
        let status = found.ok().and_then(Result::ok).unwrap_or(last);
        report(&format!("{}; the same command goes on from there\n", summary(&status)));
    }
    Err(interrupt::interrupted())
}

/// Longest time that a job which is interrupted takes to say how far it is.
const ENDING: Duration = Duration::from_secs(2);

/// Longest time to take its shards from executors, which comes first.
#[cfg(feature = "cluster")]
const TAKING_AWAY: Duration = Duration::from_secs(10);

/// Progress of a job on the terminal.
struct JobProgress {
    begun: Instant,
    /// What was done before, and the last status.
    now: Mutex<Option<(Done, BatchStatus)>>,
}

/// Rows, tokens and errors.
#[derive(Clone, Copy)]
struct Done {
    rows: u64,
    tokens: u64,
    errors: u64,
}

impl Done {
    fn of(status: &BatchStatus) -> Self {
        let total = |count: fn(&ChunkEntry) -> u64| status.total(count);
        let tokens = total(|entry| entry.completion_tokens);
        Self { rows: total(|entry| entry.rows), tokens, errors: total(|entry| entry.errors) }
    }

    /// What was done since: as the model of this process counts it, or by the chunks of a cluster.
    fn since(before: Self, workers: &Workers, status: &BatchStatus) -> Self {
        if let Workers::Local(model) = workers {
            let counts = model.counts();
            let (tokens, errors) = (counts.completion_tokens, counts.errors);
            return Self { rows: counts.rows, tokens, errors };
        }
        let now = Self::of(status);
        Self {
            rows: now.rows - before.rows,
            tokens: now.tokens - before.tokens,
            errors: now.errors - before.errors,
        }
    }
}

impl JobProgress {
    fn now(&self) -> MutexGuard<'_, Option<(Done, BatchStatus)>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, status: &BatchStatus) {
        let mut now = self.now();
        let before = now.as_ref().map_or_else(|| Done::of(status), |(before, _)| *before);
        *now = Some((before, status.clone()));
    }

    /// Shows the line, and never ends.
    async fn show(&self, workers: &Workers) {
        let (mut line, mut ticks) = (Progress::new(), tokio::time::interval(INTERVAL));
        loop {
            ticks.tick().await;
            if let Some((before, status)) = &*self.now() {
                let Done { rows, tokens, errors } = Done::since(*before, workers, status);
                let total = status.rows.saturating_sub(before.rows);
                let elapsed = self.begun.elapsed().as_secs_f64();
                if rows > 0 {
                    line.show(|| progress_words(rows, Some(total), tokens, errors, elapsed));
                }
            }
        }
    }
}

impl RunArgs {
    fn job(&self) -> Result<BatchJob, CliError> {
        let conversation = match (&self.prompt, &self.messages) {
            (Some(column), _) => Conversation::Prompt(column.clone()),
            (None, Some(column)) => Conversation::Messages(column.clone()),
            (None, None) => Conversation::Requests,
        };
        Ok(BatchJob {
            input: self.input.clone(),
            output: self.out.clone(),
            conversation,
            key: self.key.clone(),
            options: self.options()?,
            seed: self.seed,
            chunk_rows: self.chunk_rows as usize,
            shard_rows: self.shard_rows(),
        })
    }

    #[cfg(feature = "cluster")]
    fn shard_rows(&self) -> usize {
        self.shard_rows as usize
    }

    #[cfg(not(feature = "cluster"))]
    fn shard_rows(&self) -> usize {
        SHARD_ROWS as usize
    }

    /// The cluster that is named, or the model of this process.
    fn workers(self) -> Result<Workers, CliError> {
        #[cfg(feature = "cluster")]
        if let Some(cluster) = self.cluster.cluster()? {
            return Ok(Workers::Cluster(cluster));
        }
        Ok(model(self.engine).into())
    }

    /// The options, with the schema among them.
    fn options(&self) -> Result<Option<String>, CliError> {
        let Some(schema) = &self.schema else { return Ok(self.options.clone()) };
        let wrong = |flag: &str, error| CliError::Usage(format!("{flag}: {error}"));
        let options = self.options.as_deref().unwrap_or("{}");
        let mut options: Map<String, Value> =
            serde_json::from_str(options).map_err(|error| wrong("--options", error))?;
        let schema = input::file(Path::new(schema))?;
        let schema = serde_json::from_str(&schema).map_err(|error| wrong("--schema", error))?;
        options.insert("json_schema".to_owned(), schema);
        Ok(Some(Value::Object(options).to_string()))
    }
}

/// See [`StatusArgs`].
pub(crate) fn status(args: &StatusArgs) -> Result<(), CliError> {
    let status = runtime()?.block_on(batch_status(&args.out)).map_err(failed)?;
    let mut output = Output::new();
    if !args.json {
        return output.line(&summary(&status));
    }
    output.json(&serde_json::json!({
        "chunks": status.chunks,
        "chunks_done": status.entries().len(),
        "rows": status.rows,
        "rows_done": status.total(|entry| entry.rows),
        "errors": status.total(|entry| entry.errors),
        "prompt_tokens": status.total(|entry| entry.prompt_tokens),
        "completion_tokens": status.total(|entry| entry.completion_tokens),
        "complete": status.is_complete(),
    }))
}

/// How far a job is, in words.
fn summary(status: &BatchStatus) -> String {
    let total = |count: fn(&ChunkEntry) -> u64| status.total(count);
    let done = status.entries().len();
    let rows = if status.is_complete() {
        counted(done, "chunk")
    } else {
        format!("{done} of {}", counted(status.chunks, "chunk"))
    };
    let errors = match total(|entry| entry.errors) {
        0 => String::new(),
        errors => format!(", {errors} with an error"),
    };
    let tokens = total(|entry| entry.completion_tokens);
    format!("{rows}: {} rows{errors}, {tokens} tokens", total(|entry| entry.rows))
}

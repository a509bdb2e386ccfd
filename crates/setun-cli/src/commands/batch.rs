//! `setun batch`: a table of prompts becomes files of results, across restarts.

use std::{cell::RefCell, path::Path, time::Instant};

use clap::{Args as ClapArgs, Subcommand};
use serde_json::{Map, Value};
use setun_sql::{
    BatchJob, BatchStatus, ChunkEntry, Conversation, ModelHandle, batch_status, progress_words,
    run_batch,
};
use tokio::sync::oneshot;

use super::sql::{failed, progress::INTERVAL, runtime};
use crate::{
    args::EngineArgs,
    error::CliError,
    input, interrupt,
    output::{Output, Progress, counted, report},
};

/// Run jobs over tables of prompts (docs/batch.md)
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<RunArgs>),
    Status(StatusArgs),
}

/// Run a job, or go on with it
///
/// Each row of the input gets a text. The rows are cut into chunks; each chunk's results are a Parquet
/// file with the columns of the input and a column `result`. The manifest in the output names the files
/// that are done. The same command after an interruption does what is missing.
#[derive(Debug, ClapArgs)]
struct RunArgs {
    /// File or folder, here or in an object store: Parquet, CSV, JSON lines or Arrow
    #[arg(long = "in", value_name = "PATH")]
    input: String,

    /// Folder for the results, here or in an object store
    #[arg(long, value_name = "PATH")]
    out: String,

    /// Column with the prompt
    #[arg(long, value_name = "COLUMN", required_unless_present = "messages")]
    prompt: Option<String>,

    /// Column with the messages of a conversation, as a JSON array
    #[arg(long, value_name = "COLUMN", conflicts_with = "prompt")]
    messages: Option<String>,

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

    #[command(flatten)]
    engine: EngineArgs,
}

/// Show how far a job is, by its manifest alone
#[derive(Debug, ClapArgs)]
struct StatusArgs {
    /// Folder of the results
    #[arg(long, value_name = "PATH")]
    out: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// See [`Args`].
pub(crate) fn run(args: Args) -> Result<(), CliError> {
    match args.command {
        Command::Run(args) => run_job(*args),
        Command::Status(args) => show_status(&args),
    }
}

fn run_job(args: RunArgs) -> Result<(), CliError> {
    args.engine.check()?;
    let job = args.job()?;
    let engine = args.engine;
    let model = ModelHandle::lazy(Box::new(move || Ok(engine.default_engine()?)));
    let (stop, stopped) = oneshot::channel();
    let _guard = interrupt::on_signal(move || _ = stop.send(()));
    let progress = JobProgress { begun: Instant::now(), now: RefCell::default() };
    let report_status = |now: &BatchStatus| progress.record(now);
    let runtime = runtime()?;
    let ended = runtime.block_on(async {
        let ended = run_batch(&job, &model, report_status);
        tokio::select! {
            ended = ended => ended.map(Some).map_err(failed),
            () = progress.show(&model) => Ok(None),
            _ = stopped => Ok(None),
        }
    });
    runtime.shutdown_background(); // a load that was interrupted is not waited for
    if let Some(status) = ended? {
        return Output::new().line(&summary(&status));
    }
    if let Some((_, status)) = &*progress.now.borrow() {
        report(&format!("{}; the same command goes on from there\n", summary(status)));
    }
    Err(interrupt::interrupted())
}

/// Progress of a job on the terminal.
struct JobProgress {
    begun: Instant,
    /// Rows that were done before, and the last status.
    now: RefCell<Option<(u64, BatchStatus)>>,
}

impl JobProgress {
    fn record(&self, status: &BatchStatus) {
        let mut now = self.now.borrow_mut();
        let before =
            now.as_ref().map_or_else(|| status.total(|entry| entry.rows), |(rows, _)| *rows);
        *now = Some((before, status.clone()));
    }

    /// Shows the line, and never ends.
    async fn show(&self, model: &ModelHandle) {
        let (mut line, mut ticks) = (Progress::new(), tokio::time::interval(INTERVAL));
        loop {
            ticks.tick().await;
            let counts = model.counts();
            if let Some((before, status)) = &*self.now.borrow()
                && counts.rows > 0
            {
                let (tokens, errors) = (counts.completion_tokens, counts.errors);
                let total = status.rows.saturating_sub(*before);
                let elapsed = self.begun.elapsed().as_secs_f64();
                line.show(|| progress_words(counts.rows, Some(total), tokens, errors, elapsed));
            }
        }
    }
}

impl RunArgs {
    fn job(&self) -> Result<BatchJob, CliError> {
        let conversation = match (&self.prompt, &self.messages) {
            (Some(column), _) => Conversation::Prompt(column.clone()),
            (None, column) => Conversation::Messages(column.clone().unwrap_or_default()),
        };
        Ok(BatchJob {
            input: self.input.clone(),
            output: self.out.clone(),
            conversation,
            key: self.key.clone(),
            options: self.options()?,
            seed: self.seed,
            chunk_rows: self.chunk_rows as usize,
        })
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

fn show_status(args: &StatusArgs) -> Result<(), CliError> {
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

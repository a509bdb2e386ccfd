//! `setun sql`: queries over files, with the functions of a model.

mod progress;
mod rows;

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::Arc,
};

use datafusion::{
    arrow::datatypes::SchemaRef,
    error::DataFusionError,
    physical_plan::{ExecutionPlan, execute_stream},
    prelude::SessionContext,
    sql::parser::{DFParserBuilder, Statement},
};
use futures::StreamExt;
use setun_cli::{
    CliError, EngineArgs, Lines, check_export, export, input, interrupt,
    output::{Output, report},
};
use setun_sql::{ModelHandle, Settings, session};
use tokio::{runtime::Runtime, sync::oneshot};

use crate::queries::{failed, runtime};
pub(crate) use progress::INTERVAL;
use progress::QueryProgress;
use rows::{FileFormat, PrintFormat, RowWriter};

/// Query files with the functions of a model (docs/sql.md)
///
/// The functions are generate(prompt, options, key), chat(messages, options, key), embed(text),
/// score(prompt, continuation) and perplexity(text). Files and folders of Parquet, CSV, JSON lines and
/// Arrow, also of object stores, stand in quotes in place of tables:
///
///     setun sql -c "SELECT generate(prompt)['text'] FROM 'prompts.parquet'"
///
/// Without a query, they are read from a prompt or from standard input; each ends with `;`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Queries, with `;` between them; repeatable
    #[arg(short, long, value_name = "QUERIES")]
    command: Vec<String>,

    /// File with queries; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    file: Option<PathBuf>,

    /// How rows are printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    format: PrintFormat,

    /// Write the rows of the last query to a file that ends in .parquet, .jsonl or .csv
    #[arg(long, short, value_name = "FILE", value_parser = FileFormat::path)]
    output: Option<PathBuf>,

    /// Overwrite a file that is there already
    #[arg(long, requires = "output")]
    force: bool,

    /// Seed of the job; that of a row is a hash of it and the row's key
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    engine: EngineArgs,
}

/// See [`Args`].
pub(crate) fn run(args: Args) -> Result<(), CliError> {
    args.engine.check()?;
    if let Some(path) = &args.output {
        check_export(path, args.force)?;
    }
    let texts = args.texts()?;
    let settings = Settings::new(args.seed);
    let (engine, output) = (args.engine, args.output);
    let model = ModelHandle::lazy(Box::new(move || Ok(engine.default_engine()?)));
    let queries = Queries {
        runtime: runtime()?,
        context: session(&model, settings).map_err(failed)?,
        model,
        format: args.format,
    };
    let ended = queries.run_all(texts, output.as_deref(), args.force);
    queries.runtime.shutdown_background(); // a load that was interrupted is not waited for
    ended
}

impl Args {
    /// What was given as queries; none where a terminal is to be asked.
    fn texts(&self) -> Result<Option<Vec<String>>, CliError> {
        if !self.command.is_empty() {
            return Ok(Some(self.command.clone()));
        }
        match &self.file {
            Some(file) => Ok(Some(vec![input::file(file)?])),
            None if io::stdin().is_terminal() && self.output.is_none() => Ok(None),
            None => Ok(Some(vec![input::standard_input()?])),
        }
    }
}

fn statements(text: &str) -> Result<Vec<Statement>, CliError> {
    let mut parser = DFParserBuilder::new(text).build().map_err(failed)?;
    Ok(parser.parse_statements().map_err(failed)?.into())
}

/// Queries of one session.
struct Queries {
    runtime: Runtime,
    context: SessionContext,
    model: ModelHandle,
    format: PrintFormat,
}

impl Queries {
    /// Runs what was given, or else asks a terminal. The rows of the last query go to `output`.
    fn run_all(
        &self,
        texts: Option<Vec<String>>,
        output: Option<&Path>,
        force: bool,
    ) -> Result<(), CliError> {
        let Some(texts) = texts else { return self.prompt() };
        let statements: Vec<_> =
            texts.iter().map(|text| statements(text)).collect::<Result<_, _>>()?;
        let mut statements = statements.concat();
        let Some(last) = statements.pop() else {
            return Err(CliError::Usage("expected a query, found none".into()));
        };
        for statement in statements {
            self.print(statement)?;
        }
        let Some(path) = output else { return self.print(last) };
        export(path, force, |file| {
            self.run(last, |schema| RowWriter::file(FileFormat::of(path), schema, file))
        })
    }

    /// Asks a terminal for queries. One that fails is reported.
    fn prompt(&self) -> Result<(), CliError> {
        let (mut lines, mut text) = (Lines::new(), String::new());
        loop {
            let prompt = if text.is_empty() { "sql> " } else { "...> " };
            let line = lines.next(prompt, "the line", &mut Output::new())?;
            let Some(line) = line else { return Ok(()) };
            text.push_str(&line);
            text.push('\n');
            if !line.trim_end().ends_with(';') {
                continue;
            }
            let found = statements(&std::mem::take(&mut text));
            let printed = found.and_then(|all| all.into_iter().try_for_each(|one| self.print(one)));
            match printed {
                Err(error @ CliError::ClosedPipe) => return Err(error),
                Err(CliError::Interrupted { .. }) if interrupt::is_terminated() => return printed,
                Err(CliError::Interrupted { .. }) => report("interrupted\n"),
                Err(error) => report(&format!("setun: {error}\n")),
                Ok(()) => {}
            }
        }
    }

    fn print(&self, statement: Statement) -> Result<(), CliError> {
        let mut output = Output::new();
        self.run(statement, |schema| RowWriter::print(self.format, schema, &mut output))
    }

    /// Runs a query, and writes its rows as they come.
    fn run<'a>(
        &self,
        statement: Statement,
        writer: impl FnOnce(SchemaRef) -> Result<RowWriter<'a>, CliError>,
    ) -> Result<(), CliError> {
        let (stop, mut stopped) = oneshot::channel();
        let _guard = interrupt::on_signal(move || _ = stop.send(()));
        self.runtime.block_on(async {
            let plan = self.plan(statement);
            let plan = tokio::select! {
                plan = plan => plan.map_err(failed)?,
                _ = &mut stopped => return Err(interrupt::interrupted()),
            };
            let mut writer = writer(plan.schema())?;
            let mut progress = QueryProgress::new(&self.model, &plan);
            let mut rows = execute_stream(plan, self.context.task_ctx()).map_err(failed)?;
            loop {
                tokio::select! {
                    batch = rows.next() => match batch {
                        None => return writer.end(),
                        Some(batch) => progress.hidden(|| writer.write(&batch.map_err(failed)?))?,
                    },
                    () = progress.tick() => progress.show(),
                    _ = &mut stopped => return Err(interrupt::interrupted()),
                }
            }
        })
    }

    async fn plan(&self, statement: Statement) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let plan = self.context.state().statement_to_plan(statement).await?;
        self.context.execute_logical_plan(plan).await?.create_physical_plan().await
    }
}

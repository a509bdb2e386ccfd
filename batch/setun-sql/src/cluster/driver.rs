//! The connection of a job to its cluster.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use ballista::prelude::SessionContextExt;
use ballista_core::extension::SessionConfigExt;
use datafusion::{
    arrow::{array::AsArray, datatypes::DataType, record_batch::RecordBatch},
    common::{ScalarValue, exec_datafusion_err},
    datasource::listing::ListingTableUrl,
    error::DataFusionError,
    execution::{FunctionRegistry, context::DataFilePaths},
    logical_expr::{Expr, cast, col, lit},
    prelude::{DataFrame, ParquetReadOptions, SessionContext},
};
use tokio::time::timeout;
use tracing::warn;

use super::{Tls, cluster_error, config, planning_state, register};
use crate::{error::Error, functions::Function, identity::Identity, settings::Settings};

/// A cluster, by the address of its scheduler.
#[derive(Clone, Debug)]
pub struct Cluster {
    address: String,
    tls: Option<Tls>,
    /// Settings of Ballista and of the query engine.
    settings: BTreeMap<String, String>,
}

/// Texts that a chunk asks for.
pub(crate) struct TextQuery<'a> {
    pub(crate) function: Function,
    pub(crate) options: &'a str,
    pub(crate) has_keys: bool,
    pub(crate) has_paths: bool,
    /// The folder of the shards, and how many there are.
    pub(crate) files: ListingTableUrl,
    pub(crate) shards: usize,
    pub(crate) settings: Settings,
}

/// Columns of a shard. The position is that of the row in its chunk's order.
pub(crate) const POSITION: &str = "position";
pub(crate) const PROMPT: &str = "prompt";
pub(crate) const KEY: &str = "key";
pub(crate) const PATH: &str = "path";

/// Longest time for an executor to tell its model. It may be busy.
const WAIT: Duration = Duration::from_mins(10);

/// Time after which the log says that none has.
const PATIENCE: Duration = Duration::from_secs(10);

/// The column of texts.
const RESULT: &str = "result";

impl Cluster {
    /// The cluster whose scheduler has the address `HOST:PORT`. It is reached when a job begins.
    #[must_use]
    pub fn new(address: &str, tls: Option<Tls>) -> Self {
        let address = address.trim_start_matches("df://").to_owned();
        Self { address, tls, settings: BTreeMap::new() }
    }

    /// With a setting of Ballista or the query engine for all queries, such as
    /// `ballista.client.use_tls`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Checks options on an executor, and tells its model.
    pub(crate) async fn identity(
        &self,
        function: Function,
        options: Option<&str>,
    ) -> Result<Identity, Error> {
        let context = self.context("begin", 1, Settings::default()).await?;
        let model = call(&context, Function::Model.name(), vec![])?;
        // No prompt has no tokens; the options are read before it.
        let none = lit(ScalarValue::Utf8(None));
        let mut arguments = vec![none.clone(), lit(options.unwrap_or("{}"))];
        arguments.extend((function == Function::Respond).then_some(none));
        let check = call(&context, function.name(), arguments)?;
        let model = cast(model, strings(Function::Model));
        let row = context.read_empty()?.select(vec![model, cast(check, strings(function))])?;
        let none = "no executor has answered, expected one with a model";
        let asked = async {
            let answer = self.collect(row);
            tokio::pin!(answer);
            if let Ok(found) = timeout(PATIENCE, &mut answer).await {
                return found;
            }
            warn!(scheduler = self.address, "{none} (`setun batch executor`); waiting");
            answer.await
        };
        let found = timeout(WAIT, asked).await.map_err(|_| self.failed(&none))??;
        let fields = found.first().filter(|rows| rows.num_rows() > 0);
        let fields = fields.and_then(|rows| rows.column(0).as_struct_opt());
        let text = |name| {
            let column = fields?.column_by_name(name)?.as_string_opt::<i32>()?;
            Some(column.value(0).to_owned())
        };
        let (name, fingerprint) = text("name").zip(text("fingerprint")).ok_or_else(|| {
            Error::Query(exec_datafusion_err!("the cluster {} tells no model", self.address))
        })?;
        Ok(Identity { name, fingerprint })
    }

    /// Positions and texts, in any order.
    pub(crate) async fn texts(&self, query: &TextQuery<'_>) -> Result<Vec<RecordBatch>, Error> {
        let settings = query.settings.clone();
        let context = self.context(&query.settings.chunk, query.shards, settings).await?;
        let second = if query.has_paths { col(PATH) } else { lit(query.options) };
        let mut arguments = vec![col(PROMPT), second];
        arguments.extend(query.has_keys.then(|| col(KEY)));
        let texts = call(&context, query.function.name(), arguments)?;
        let texts = cast(texts, strings(query.function)).alias(RESULT);
        let rows = context.read_parquet(Folder(&query.files), ParquetReadOptions::default());
        self.collect(rows.await?.select(vec![col(POSITION), texts])?).await
    }

    async fn context(
        &self,
        name: &str,
        tasks: usize,
        settings: Settings,
    ) -> Result<SessionContext, Error> {
        let mut config = config()
            .with_option_extension(settings)
            .with_target_partitions(tasks)
            .with_repartition_file_scans(false)
            .with_ballista_coalesce_enabled(false)
            .with_ballista_job_name(name);
        // One task would take all files up to the free slots of an executor.
        config.options_mut().set(TASK_FILES, "1")?;
        if let Some(tls) = &self.tls {
            config = tls.for_client(config);
        }
        for (name, value) in &self.settings {
            config.options_mut().set(name, value)?;
        }
        let state = planning_state(config)?;
        let address = format!("df://{}", self.address);
        let context = SessionContext::remote_with_state(&address, state).await?;
        register(&mut context.state_ref().write())?; // Ballista has put its own functions in their place
        Ok(context)
    }

    async fn collect(&self, rows: DataFrame) -> Result<Vec<RecordBatch>, Error> {
        let found = rows.collect().await;
        found.map_err(|error| self.named(&error))
    }

    /// An error of the cluster, whose address it names. What a function says of its arguments stands in Ballista's words.
    fn named(&self, error: &DataFusionError) -> Error {
        let message = error.message();
        let (_, said) = message.split_once("Execution(\"").unwrap_or_default();
        match said.split_once("\")") {
            Some((reason, _)) => {
                let (address, reason) = (self.address.clone(), reason.replace("\\\"", "\""));
                Error::Refused { address, reason }
            }
            None => self.failed(&message),
        }
    }

    fn failed(&self, reason: &dyn fmt::Display) -> Error {
        cluster_error(&self.address, reason)
    }
}

const TASK_FILES: &str = "ballista.scheduler.max_partitions_per_task";

fn call(context: &SessionContext, name: &str, arguments: Vec<Expr>) -> Result<Expr, Error> {
    Ok(context.state().udf(name)?.call(arguments))
}

/// The type of a function's result, with plain strings: views do not travel.
fn strings(function: Function) -> DataType {
    let plain = |field: &Arc<datafusion::arrow::datatypes::Field>| match field.data_type() {
        DataType::Utf8View => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        _ => Arc::clone(field),
    };
    DataType::Struct(function.fields().iter().map(plain).collect())
}

/// A folder by its address: in a path, some characters would mean more than one.
struct Folder<'a>(&'a ListingTableUrl);

impl DataFilePaths for Folder<'_> {
    fn to_urls(self) -> datafusion::error::Result<Vec<ListingTableUrl>> {
        Ok(vec![self.0.clone()])
    }
}

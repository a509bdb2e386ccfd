//! Rows of a chunk and their results.

use std::sync::Arc;

use datafusion::arrow::{
    array::{Array, ArrayRef, AsArray, StringViewArray, StructArray},
    compute::{cast, sort_to_indices, take},
    datatypes::{DataType, Field, Schema, UInt32Type},
    json::LineDelimitedWriter,
    record_batch::RecordBatch,
};
use serde_json::{Map, Value};
use tracing::info;

use super::{
    Run,
    job::Conversation,
    manifest::ChunkResults,
    requests,
    rows::{OrderedRows, RESULT, inverse, parquet},
};
use crate::error::Error;

/// Consecutive rows of a file.
pub(super) struct Chunk {
    pub(super) name: String,
    pub(super) rows: RecordBatch,
}

/// What depends on the state of a cache, and so on more than the job.
const LEFT_OUT: &str = "cached_tokens";

impl Chunk {
    pub(super) async fn run(&self, run: Run<'_>) -> Result<ChunkResults, Error> {
        let job = run.job;
        let prompts = self.column(job.conversation.column())?;
        let keys = job.key_column().map(|key| self.column(key)).transpose()?;
        let is_requests = job.conversation == Conversation::Requests;
        let paths = is_requests.then(|| self.column(requests::PATH)).transpose()?;
        // Rows that begin alike follow each other, so that they share what is computed.
        let order = sort_to_indices(&prompts, None, None)?;
        let ordered = |column: ArrayRef| take(&column, &order, None);
        let (keys, paths) = (keys.map(ordered).transpose()?, paths.map(ordered).transpose()?);
        let rows = OrderedRows { chunk: &self.name, prompts: ordered(prompts)?, keys, paths };
        let found = run.workers.texts(run, rows).await?;
        let found = take(&found, &inverse(&order), None)?;
        self.results(found.as_struct(), is_requests)
    }

    /// A column as strings.
    fn column(&self, name: &str) -> Result<ArrayRef, Error> {
        let column = self.rows.column_by_name(name).ok_or_else(|| Error::Input {
            input: self.name.clone(),
            reason: format!("no column `{name}`"),
        })?;
        match column.data_type() {
            DataType::List(_) | DataType::LargeList(_) => json_texts(column),
            _ => Ok(cast(column, &DataType::Utf8View)?),
        }
    }

    fn results(&self, found: &StructArray, is_requests: bool) -> Result<ChunkResults, Error> {
        let total = |name| {
            let counts = found.column_by_name(name)?.as_primitive_opt::<UInt32Type>()?;
            Some(counts.iter().flatten().map(u64::from).sum())
        };
        let errors = self.log_errors(found);
        let kept = found.fields().iter().zip(found.columns());
        let kept = kept.filter(|(field, _)| field.name() != LEFT_OUT);
        let (fields, columns): (Vec<_>, Vec<_>) =
            kept.map(|(field, column)| (Arc::clone(field), Arc::clone(column))).unzip();
        let result = StructArray::new(fields.into(), columns, None);
        Ok(ChunkResults {
            bytes: if is_requests {
                requests::lines(&self.rows, &result)
            } else {
                parquet(&self.with_results(result)?)?
            },
            rows: found.len(),
            errors,
            prompt_tokens: total("prompt_tokens").unwrap_or(0),
            completion_tokens: total("completion_tokens").unwrap_or(0),
        })
    }

    /// Counts the rows with an error, each a line of the log.
    fn log_errors(&self, found: &StructArray) -> usize {
        let errors = found.column_by_name("error").and_then(|errors| errors.as_string_view_opt());
        let errors = errors.into_iter().flatten().enumerate();
        let errors = errors.filter_map(|(row, error)| Some((row, error?)));
        errors.inspect(|(row, error)| info!(chunk = self.name, row, error, "row")).count()
    }

    /// The columns of the input, and the results.
    fn with_results(&self, result: StructArray) -> Result<RecordBatch, Error> {
        let field = Field::new(RESULT, result.data_type().clone(), false);
        let schema = self.rows.schema();
        let fields: Vec<_> = schema.fields().iter().cloned().chain([Arc::new(field)]).collect();
        let columns = self.rows.columns().iter().cloned();
        let columns = columns.chain([Arc::new(result) as ArrayRef]).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
    }
}

/// Lists of messages as JSON.
fn json_texts(column: &ArrayRef) -> Result<ArrayRef, Error> {
    let rows = RecordBatch::try_from_iter([("messages", Arc::clone(column))])?;
    let mut writer = LineDelimitedWriter::new(vec![]);
    writer.write(&rows)?;
    writer.finish()?;
    let lines = String::from_utf8_lossy(&writer.into_inner()).into_owned();
    let text = |line: &str| {
        let mut row: Map<String, Value> = serde_json::from_str(line).ok()?;
        row.remove("messages").map(|messages| messages.to_string())
    };
    Ok(Arc::new(lines.lines().map(text).collect::<StringViewArray>()))
}

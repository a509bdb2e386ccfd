//! Rows of a chunk and their results.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{Array, ArrayRef, AsArray, StringViewArray, StructArray, UInt32Array},
        compute::{cast, sort_to_indices, take},
        datatypes::{DataType, Field, Schema, UInt32Type},
        json::LineDelimitedWriter,
        record_batch::RecordBatch,
    },
    error::DataFusionError,
    parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties},
};
use serde_json::{Map, Value};

use super::job::BatchJob;
use crate::{error::Error, functions::texts, handle::ModelHandle, settings::Settings};

/// Consecutive rows of a file.
pub(super) struct Chunk {
    pub(super) name: String,
    pub(super) rows: RecordBatch,
}

/// The file of a chunk, and what is counted of it.
pub(super) struct ChunkResults {
    pub(super) bytes: Vec<u8>,
    pub(super) rows: usize,
    pub(super) errors: usize,
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
}

/// The column of the results.
pub(super) const RESULT: &str = "result";

/// What depends on the state of a cache, and so on more than the job.
const LEFT_OUT: &str = "cached_tokens";

impl Chunk {
    pub(super) async fn run(
        &self,
        job: &BatchJob,
        model: &ModelHandle,
        settings: Settings,
    ) -> Result<ChunkResults, Error> {
        let prompts = self.column(job.conversation.column())?;
        let keys = job.key.as_deref().map(|key| self.column(key)).transpose()?;
        // Rows that begin alike follow each other, so that they share what is computed.
        let order = sort_to_indices(&prompts, None, None)?;
        let ordered = |column: ArrayRef| take(&column, &order, None);
        let (prompts, keys) = (ordered(prompts)?, keys.map(ordered).transpose()?);
        let options = job.options.as_deref().unwrap_or("{}");
        let found = texts(job.conversation.function(), model, settings, prompts, options, keys);
        let found = take(&found.await?, &inverse(&order), None)?;
        self.results(found.as_struct())
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

    fn results(&self, found: &StructArray) -> Result<ChunkResults, Error> {
        let total = |name| {
            let counts = found.column_by_name(name)?.as_primitive_opt::<UInt32Type>()?;
            Some(counts.iter().flatten().map(u64::from).sum())
        };
        let errors = found.column_by_name("error");
        let errors = errors.map_or(0, |errors| errors.len() - errors.null_count());
        let kept = found.fields().iter().zip(found.columns());
        let kept = kept.filter(|(field, _)| field.name() != LEFT_OUT);
        let (fields, columns): (Vec<_>, Vec<_>) =
            kept.map(|(field, column)| (Arc::clone(field), Arc::clone(column))).unzip();
        let result = StructArray::new(fields.into(), columns, None);
        Ok(ChunkResults {
            bytes: self.parquet(result)?,
            rows: found.len(),
            errors,
            prompt_tokens: total("prompt_tokens").unwrap_or(0),
            completion_tokens: total("completion_tokens").unwrap_or(0),
        })
    }

    /// The file: the columns of the input, and the results.
    fn parquet(&self, result: StructArray) -> Result<Vec<u8>, Error> {
        let field = Field::new(RESULT, result.data_type().clone(), false);
        let schema = self.rows.schema();
        let fields: Vec<_> = schema.fields().iter().cloned().chain([Arc::new(field)]).collect();
        let columns = self.rows.columns().iter().cloned();
        let columns = columns.chain([Arc::new(result) as ArrayRef]).collect();
        let schema = Arc::new(Schema::new(fields));
        let rows = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let failed = |error| Error::Query(DataFusionError::from(error));
        let mut writer = ArrowWriter::try_new(vec![], schema, Some(properties)).map_err(failed)?;
        writer.write(&rows).map_err(failed)?;
        writer.into_inner().map_err(failed)
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

/// The order that undoes an order.
fn inverse(order: &UInt32Array) -> UInt32Array {
    let mut places = vec![0; order.len()];
    for (place, &row) in (0..).zip(order.values()) {
        places[row as usize] = place;
    }
    places.into()
}

//! `embed`: texts as vectors.

use std::sync::Arc;

use datafusion::arrow::{
    array::{ArrayRef, ListArray, StringViewArray, StructArray, UInt32Array},
    datatypes::{DataType, Field, Fields, Float32Type},
};
use serde::Deserialize;
use setun::{Embedding, Pooling};

use super::Call;
use crate::{error::Error, handle::RowTokens};

/// The places of the arguments.
const TEXT: usize = 0;
const OPTIONS: usize = 1;

/// Options, as a JSON object.
#[derive(Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    pooling: PoolingName,
    normalize: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PoolingName {
    Last,
    Mean,
}

impl Default for Options {
    fn default() -> Self {
        Self { pooling: PoolingName::Last, normalize: true }
    }
}

pub(super) fn fields() -> Fields {
    let values = Field::new_list_field(DataType::Float32, true);
    Fields::from(vec![
        Field::new("embedding", DataType::List(Arc::new(values)), true),
        Field::new("tokens", DataType::UInt32, true),
        Field::new("error", DataType::Utf8View, true),
    ])
}

pub(super) async fn embed(call: &Call<'_>) -> Result<ArrayRef, Error> {
    if call.arguments.get(OPTIONS).is_some_and(|options| options.is_literal) {
        let wrong = |error: Error| Error::Argument {
            function: call.function.name(),
            reason: error.to_string(),
        };
        options(call, 0).map_err(wrong)?;
    }
    let rows = call.model.each_row(call.rows, |row| {
        Box::pin(async move {
            let (Options { pooling, normalize }, text) =
                (options(call, row)?, call.text(TEXT, row, "text")?);
            let pooling = match pooling {
                PoolingName::Last => Pooling::Last,
                PoolingName::Mean => Pooling::Mean,
            };
            let one = call.loaded.engine.embed([text.to_owned()], pooling, normalize).await.pop();
            let embedding = one.ok_or_else(|| Error::Row("the text has no embedding".into()))??;
            let (prompt, cached) = (embedding.tokens, embedding.cached_tokens);
            Ok((embedding, RowTokens { prompt, cached, completion: 0 }))
        })
    });
    Ok(column(&rows.await?))
}

fn options(call: &Call<'_>, row: usize) -> Result<Options, Error> {
    let given = call.arguments.get(OPTIONS).and_then(|options| options.get(row));
    let Some(text) = given else { return Ok(Options::default()) };
    serde_json::from_str(text).map_err(|error| Error::Row(format!("options: {error}")))
}

fn column(rows: &[Result<Embedding, String>]) -> ArrayRef {
    let values = rows.iter().map(|row| {
        let embedding = row.as_ref().ok()?;
        Some(embedding.values.iter().map(|&value| Some(value)))
    });
    let values = ListArray::from_iter_primitive::<Float32Type, _, _>(values);
    let tokens = rows.iter().map(|row| u32::try_from(row.as_ref().ok()?.tokens).ok());
    let errors: StringViewArray = rows.iter().map(|row| row.as_ref().err()).collect();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(values), Arc::new(tokens.collect::<UInt32Array>()), Arc::new(errors)];
    Arc::new(StructArray::new(fields(), columns, None))
}

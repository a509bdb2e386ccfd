//! `generate` and `chat`: texts from prompts and conversations.

use std::sync::Arc;

use datafusion::arrow::{
    array::{ArrayRef, StringViewArray, StructArray, UInt32Array},
    datatypes::{DataType, Field, Fields},
};
use setun::{Completion, GenerateOptions, Prompt, messages_from_json};

use super::Call;
use crate::{
    error::Error,
    handle::{Prepared, RowTokens},
};

/// The places of the arguments.
const PROMPT: usize = 0;
const OPTIONS: usize = 1;
const KEY: usize = 2;

pub(super) fn fields() -> Fields {
    let texts = ["text", "finish_reason"].map(|name| Field::new(name, DataType::Utf8View, true));
    let counts = ["prompt_tokens", "completion_tokens", "cached_tokens"];
    let counts = counts.map(|name| Field::new(name, DataType::UInt32, true));
    texts.into_iter().chain(counts).chain([Field::new("error", DataType::Utf8View, true)]).collect()
}

pub(super) async fn generate(call: &Call<'_>) -> Result<ArrayRef, Error> {
    let prompt = |row| Ok(Prompt::from(call.text(PROMPT, row, "prompt")?));
    texts(call, prompt).await
}

pub(super) async fn chat(call: &Call<'_>) -> Result<ArrayRef, Error> {
    if !call.loaded.engine.has_chat_template() {
        let reason = "the model has no chat template, expected one beside its weights".into();
        return Err(Error::Argument { function: call.function.name(), reason });
    }
    let prompt = |row| {
        let messages = messages_from_json(call.text(PROMPT, row, "conversation")?);
        messages.map(Prompt::Chat).map_err(|error| Error::Row(error.to_string()))
    };
    texts(call, prompt).await
}

async fn texts(
    call: &Call<'_>,
    prompt: impl Fn(usize) -> Result<Prompt, Error> + Sync,
) -> Result<ArrayRef, Error> {
    let options = call.options(OPTIONS).await?;
    let (options, prompt) = (&options, &prompt);
    let rows = call.model.each_row(call.rows, |row| {
        Box::pin(async move {
            let options = row_options(call, options, row)?;
            let completion = call.loaded.engine.generate(prompt(row)?, options)?.finish().await?;
            let usage = completion.done.usage;
            let tokens = RowTokens {
                prompt: usage.prompt_tokens,
                cached: usage.cached_tokens,
                completion: usage.completion_tokens,
            };
            Ok((completion, tokens))
        })
    });
    Ok(column(&rows.await?))
}

/// The options of a row, with its seed.
fn row_options(
    call: &Call<'_>,
    options: &[Prepared],
    row: usize,
) -> Result<GenerateOptions, Error> {
    let given = options.get(row).or(options.first());
    let mut options = match given {
        Some(Ok(options)) => GenerateOptions::clone(options),
        Some(Err(reason)) => return Err(Error::Row(reason.to_string())),
        None => GenerateOptions::new(),
    };
    let key = call.arguments.get(KEY).and_then(|keys| keys.get(row));
    let key = key.or(call.arguments[PROMPT].get(row)).unwrap_or_default();
    options.seed.get_or_insert_with(|| call.settings.row_seed(key));
    options.chat_template_time = options.chat_template_time.or(call.time());
    Ok(options)
}

fn column(rows: &[Result<Completion, String>]) -> ArrayRef {
    let texts = |text: fn(&Completion) -> &str| -> ArrayRef {
        let column = rows.iter().map(|row| row.as_ref().ok().map(text));
        Arc::new(column.collect::<StringViewArray>())
    };
    let counts = |count: fn(&Completion) -> usize| -> ArrayRef {
        let column = rows.iter().map(|row| u32::try_from(count(row.as_ref().ok()?)).ok());
        Arc::new(column.collect::<UInt32Array>())
    };
    let errors: StringViewArray = rows.iter().map(|row| row.as_ref().err()).collect();
    let columns = vec![
        texts(|row| &row.text),
        texts(|row| row.done.finish_reason.as_str()),
        counts(|row| row.done.usage.prompt_tokens),
        counts(|row| row.done.usage.completion_tokens),
        counts(|row| row.done.usage.cached_tokens),
        Arc::new(errors),
    ];
    Arc::new(StructArray::new(fields(), columns, None))
}

//! `score` and `perplexity`: how likely the model finds given texts.

use std::sync::Arc;

use datafusion::arrow::{
    array::{ArrayRef, Float64Array, StringViewArray, StructArray, UInt32Array},
    datatypes::{DataType, Field, Fields},
};
use setun::{GenerateOptions, TextDelta};

use super::Call;
use crate::{error::Error, handle::RowTokens};

/// A sum of log-probabilities over tokens.
struct Sum {
    logprob: f64,
    tokens: usize,
}

impl Sum {
    fn of(tokens: &[TextDelta]) -> Self {
        let counted = tokens.iter().filter_map(|token| token.logprob);
        Self { logprob: counted.clone().sum(), tokens: counted.count() }
    }

    #[expect(clippy::cast_precision_loss, reason = "fewer tokens than 2^52")]
    fn mean(&self) -> f64 {
        self.logprob / self.tokens as f64
    }
}

pub(super) fn fields() -> Fields {
    sum_fields(["logprob", "mean_logprob"])
}

pub(super) fn perplexity_fields() -> Fields {
    sum_fields(["perplexity", "mean_nll"])
}

fn sum_fields(numbers: [&str; 2]) -> Fields {
    let numbers = numbers.map(|name| Field::new(name, DataType::Float64, true));
    let others = [
        Field::new("tokens", DataType::UInt32, true),
        Field::new("error", DataType::Utf8View, true),
    ];
    numbers.into_iter().chain(others).collect()
}

/// Log-probability of a continuation, in the tokens that it has together with its prompt.
pub(super) async fn score(call: &Call<'_>) -> Result<ArrayRef, Error> {
    let rows = call.model.each_row(call.rows, |row| {
        Box::pin(async move {
            let (prompt, more) = (call.text(0, row, "prompt")?, call.text(1, row, "continuation")?);
            let scores = call.loaded.engine.score(prompt, &[more]).await?;
            let sum = Sum::of(scores.first().map_or(&[], |score| &score.tokens));
            let tokens = RowTokens { prompt: sum.tokens, ..RowTokens::default() };
            Ok((sum, tokens))
        })
    });
    Ok(column(fields(), &rows.await?, |sum| [sum.logprob, sum.mean()]))
}

/// The exponential of the mean, over all tokens but the first, of −ln p(token | those before it).
pub(super) async fn perplexity(call: &Call<'_>) -> Result<ArrayRef, Error> {
    let rows = call.model.each_row(call.rows, |row| {
        Box::pin(async move {
            let text = call.text(0, row, "text")?;
            let options = GenerateOptions::new().prompt_logprobs(true);
            let completion = call.loaded.engine.prefill(text, options)?.finish().await?;
            let sum = Sum::of(&completion.prompt);
            if sum.tokens == 0 {
                return Err(Error::Row("the text has one token, expected two or more".into()));
            }
            let prompt = completion.done.usage.prompt_tokens;
            Ok((sum, RowTokens { prompt, ..RowTokens::default() }))
        })
    });
    let numbers = |sum: &Sum| [libm::exp(-sum.mean()), -sum.mean()];
    Ok(column(perplexity_fields(), &rows.await?, numbers))
}

fn column(
    fields: Fields,
    rows: &[Result<Sum, String>],
    numbers: impl Fn(&Sum) -> [f64; 2],
) -> ArrayRef {
    let number = |place: usize| -> ArrayRef {
        let column = rows.iter().map(|row| row.as_ref().ok().map(|sum| numbers(sum)[place]));
        Arc::new(column.collect::<Float64Array>())
    };
    let tokens = rows.iter().map(|row| u32::try_from(row.as_ref().ok()?.tokens).ok());
    let errors: StringViewArray = rows.iter().map(|row| row.as_ref().err()).collect();
    let others: [ArrayRef; 2] = [Arc::new(tokens.collect::<UInt32Array>()), Arc::new(errors)];
    let columns = [number(0), number(1)].into_iter().chain(others).collect();
    Arc::new(StructArray::new(fields, columns, None))
}

//! Lists of requests that run beside each other. Each ends in a result or the reason why there is none; only what is
//! wrong with the engine ends a call.

use std::future::Future;

use futures::future::try_join_all;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use setun::{
    Engine, EngineError, ErrorCode, GenerateOptions, Pooling, Prompt, TextDelta, row_seed,
};
use tokio::sync::{Mutex, Semaphore};

use crate::{
    error::{engine_exception, with_code},
    wait::{pause, wait},
};

/// A row from Python: a text, tokens, or the reason why it is neither.
#[derive(FromPyObject)]
pub(crate) enum Input {
    Text(String),
    Wrong((String,)),
    Tokens(Vec<u32>),
}

/// A result, or the reason why a row has none.
#[derive(IntoPyObject)]
pub(crate) enum Outcome<T> {
    Row(T),
    Error(String),
}

/// A text: itself, tokens, their log-probabilities, why it ended, tokens of the prompt, of the text
/// and from the cache, seed, and whether its constraint has it go on.
#[derive(IntoPyObject)]
pub(crate) struct Completion(
    String,
    Array<u32>,
    Option<Array<f64>>,
    &'static str,
    usize,
    usize,
    usize,
    u64,
    bool,
);

/// Log-probabilities of a text, and its tokens.
#[derive(IntoPyObject)]
pub(crate) struct Score(Array<f64>, Array<u32>);

/// Numbers that become an array of `NumPy`.
pub(crate) struct Array<T>(Vec<T>);

impl<'py, T: numpy::Element> IntoPyObject<'py> for Array<T> {
    type Target = PyArray1<T>;
    type Output = Bound<'py, PyArray1<T>>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(self.0.into_pyarray(py))
    }
}

/// Rows that an engine may have at once, of the calls of all threads together.
pub(crate) struct Room {
    places: Semaphore,
    /// Of rows that found no place, one looks again.
    turn: Mutex<()>,
}

impl Room {
    pub(crate) fn of(engine: &Engine) -> Self {
        Self { places: Semaphore::new(engine.max_in_flight()), turn: Mutex::new(()) }
    }
}

/// A prompt, if the row is one.
pub(crate) fn prompt(input: Input) -> Result<Prompt, String> {
    match input {
        Input::Text(text) => Ok(Prompt::Text(text)),
        Input::Tokens(tokens) => Ok(Prompt::Tokens(tokens)),
        Input::Wrong((reason,)) => Err(reason),
    }
}

/// A text, if the row is one.
pub(crate) fn text(input: Input) -> Result<String, String> {
    match input {
        Input::Text(text) => Ok(text),
        Input::Tokens(_) => Err("the row has tokens, expected a string".into()),
        Input::Wrong((reason,)) => Err(reason),
    }
}

/// Continues prompts. With keys each row has a seed of its own.
pub(crate) fn generate(
    py: Python<'_>,
    (engine, room): (&Engine, &Room),
    prompts: impl ExactSizeIterator<Item = Result<Prompt, String>> + Send,
    options: &GenerateOptions,
    keys: Option<Vec<String>>,
) -> PyResult<Vec<Outcome<Completion>>> {
    if let Some(keys) = &keys
        && keys.len() != prompts.len()
    {
        let (expected, found) = (prompts.len(), keys.len());
        let reason = format!("keys are {found}, expected {expected}, one for each row");
        return Err(with_code("bad-option", &reason));
    }
    let mut keys = keys.into_iter().flatten();
    let rows = prompts.map(|prompt| {
        let mut options = options.clone();
        if let Some(key) = keys.next() {
            options.seed = Some(row_seed(options.seed.unwrap_or_default(), &key));
        }
        Ok((prompt?, options))
    });
    each(py, room, rows, |(prompt, options)| async move {
        Ok(Completion::from(engine.generate(prompt, options)?.finish().await?))
    })
}

/// Texts as vectors.
pub(crate) fn embed(
    py: Python<'_>,
    (engine, room): (&Engine, &Room),
    texts: Vec<Input>,
    (pooling, normalize): (Pooling, bool),
) -> PyResult<Vec<Outcome<Array<f32>>>> {
    each(py, room, texts.into_iter().map(prompt), |text| async move {
        let found = engine.embed([text], pooling, normalize).await;
        let values = found.into_iter().map(|row| row.map(|embedding| embedding.values));
        Ok(Array(values.collect::<Result<Vec<_>, _>>()?.concat()))
    })
}

/// Scores continuations after their prompts.
pub(crate) fn score(
    py: Python<'_>,
    (engine, room): (&Engine, &Room),
    prompts: Vec<Input>,
    continuations: Vec<Input>,
) -> PyResult<Vec<Outcome<Score>>> {
    let rows = prompts.into_iter().zip(continuations);
    let rows = rows.map(|(input, more)| Ok((prompt(input)?, text(more)?)));
    each(py, room, rows, |(prompt, more)| async move {
        let scores = engine.score(prompt, &[more]).await?;
        Ok(Score::of(scores.iter().flat_map(|score| &score.tokens)))
    })
}

/// Scores whole texts.
pub(crate) fn score_texts(
    py: Python<'_>,
    (engine, room): (&Engine, &Room),
    texts: Vec<Input>,
) -> PyResult<Vec<Outcome<Score>>> {
    each(py, room, texts.into_iter().map(prompt), |text| async move {
        let options = GenerateOptions::new().prompt_logprobs(true);
        Ok(Score::of(&engine.prefill(text, options)?.finish().await?.prompt))
    })
}

/// Runs requests beside each other; the results are in order.
fn each<Input, Row, Running>(
    py: Python<'_>,
    room: &Room,
    inputs: impl Iterator<Item = Result<Input, String>> + Send,
    run: impl Fn(Input) -> Running + Send + Sync,
) -> PyResult<Vec<Outcome<Row>>>
where
    Input: Clone + Send,
    Row: Send,
    Running: Future<Output = Result<Row, EngineError>> + Send,
{
    let run = |input| async {
        let input: Input = match input {
            Ok(input) => input,
            Err(reason) => return Ok(Outcome::Error(reason)),
        };
        let _place = room.places.acquire().await;
        let mut found = run(input.clone()).await;
        if is_busy(&found) {
            // Streams have the places that rows would have, until they end.
            let _turn = room.turn.lock().await;
            while is_busy(&found) {
                pause().await;
                found = run(input.clone()).await;
            }
        }
        match found {
            Ok(row) => Ok(Outcome::Row(row)),
            Err(error) if is_of_row(&error) => Ok(Outcome::Error(error.to_string())),
            Err(error) => Err(error),
        }
    };
    wait(py, async { try_join_all(inputs.map(run)).await })?
        .map_err(|error| engine_exception(&error))
}

fn is_busy<Row>(found: &Result<Row, EngineError>) -> bool {
    matches!(found, Err(EngineError::Busy { .. }))
}

/// Whether the reason lies in the row, or in the time that it had to wait.
fn is_of_row(error: &EngineError) -> bool {
    error.is_of_request() || error.code() == ErrorCode::Busy
}

impl From<setun::Completion> for Completion {
    fn from(completion: setun::Completion) -> Self {
        let setun::Completion { text, tokens, deltas, done, .. } = completion;
        let logprobs: Option<Vec<f64>> = deltas.iter().map(|delta| delta.logprob).collect();
        let logprobs = logprobs.filter(|logprobs| !logprobs.is_empty());
        let (reason, usage) = (done.finish_reason.as_str(), done.usage);
        let (prompt, completion) = (usage.prompt_tokens, usage.completion_tokens);
        let (tokens, logprobs) = (Array(tokens), logprobs.map(Array));
        let (cached, seed, unfinished) = (usage.cached_tokens, done.seed, done.unfinished);
        Self(text, tokens, logprobs, reason, prompt, completion, cached, seed, unfinished)
    }
}

impl Score {
    /// Of tokens, those with a log-probability: a text's first token has none.
    fn of<'a>(tokens: impl IntoIterator<Item = &'a TextDelta>) -> Self {
        let scored = tokens.into_iter().filter_map(|token| Some((token.logprob?, token.token)));
        let (logprobs, tokens) = scored.unzip();
        Self(Array(logprobs), Array(tokens))
    }
}

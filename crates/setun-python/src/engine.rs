//! An engine in a Python process.

use std::{
    mem::ManuallyDrop,
    process,
    sync::{OnceLock, PoisonError, RwLock},
};

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use serde_json::{Map, Value};
use setun::{
    Engine, EngineConfig, GenerateOptions, Model, Pooling, Prompt,
    checkpoint::{CheckpointError, Options},
    messages_from_json, options_from_json,
    text::OptionValue,
};

use crate::{
    error::{engine_exception, exception, forked, with_code},
    rows::{self, Array, Completion, Input, Outcome, Room, Score},
    stream::NativeStream,
};

/// The first process that has loaded a model.
static LOADED_IN: OnceLock<u32> = OnceLock::new();

/// A loaded model.
#[pyclass(frozen)]
pub(crate) struct NativeEngine {
    /// Nothing once it is closed. Never dropped in a fork, which has none of its threads.
    engine: RwLock<Option<ManuallyDrop<Engine>>>,
    room: Room,
    process: u32,
}

#[pymethods]
impl NativeEngine {
    /// Loads a model: a path, the name of a pulled one, or without either the embedded one. `config`
    /// has the engine's options as a JSON object.
    #[new]
    fn new(py: Python<'_>, model: Option<&str>, config: &str) -> PyResult<Self> {
        // Threads that have loaded a model are gone in a fork, where another load would wait for them.
        let process = process::id();
        let (config, files) = read_config(config)?;
        let loaded_in = LOADED_IN.get_or_init(|| process);
        if *loaded_in != process {
            return Err(forked(*loaded_in));
        }
        let engine = py.detach(|| Engine::builder(open(model, files)?).config(config).build());
        let engine = engine.map_err(|error| exception(&error))?;
        let room = Room::of(&engine);
        Ok(Self { engine: RwLock::new(Some(ManuallyDrop::new(engine))), room, process })
    }

    /// Lets go of the engine. It ends, and its memory is free, when calls and streams of it have ended.
    fn close(&self, py: Python<'_>) {
        let engine = self.engine.write().unwrap_or_else(PoisonError::into_inner).take();
        if self.process == process::id() {
            py.detach(|| drop(engine.map(ManuallyDrop::into_inner)));
        }
    }

    /// Texts from prompts; each is a result or the reason why there is none.
    fn generate(
        &self,
        py: Python<'_>,
        prompts: Vec<Input>,
        options: &str,
        keys: Option<Vec<String>>,
    ) -> PyResult<Vec<Outcome<Completion>>> {
        let engine = self.engine()?;
        let options = read_options(py, &engine, options)?;
        let prompts = prompts.into_iter().map(rows::prompt);
        rows::generate(py, (&engine, &self.room), prompts, &options, keys)
    }

    /// Answers to conversations, each a JSON array of messages.
    fn chat(
        &self,
        py: Python<'_>,
        conversations: Vec<Input>,
        options: &str,
        keys: Option<Vec<String>>,
    ) -> PyResult<Vec<Outcome<Completion>>> {
        let engine = self.engine()?;
        let options = read_options(py, &engine, options)?;
        let prompt = |row| messages(&rows::text(row)?).map_err(|error| error.to_string());
        let prompts = conversations.into_iter().map(prompt);
        rows::generate(py, (&engine, &self.room), prompts, &options, keys)
    }

    /// One text, to be read while it is generated.
    fn stream(&self, py: Python<'_>, prompt: Input, options: &str) -> PyResult<NativeStream> {
        let prompt = rows::prompt(prompt).map_err(|reason| with_code("bad-option", &reason))?;
        self.begin_stream(py, prompt, options)
    }

    /// One answer, the same.
    fn stream_chat(
        &self,
        py: Python<'_>,
        conversation: &str,
        options: &str,
    ) -> PyResult<NativeStream> {
        let prompt = messages(conversation).map_err(|error| exception(&error))?;
        self.begin_stream(py, prompt, options)
    }

    /// Texts as vectors.
    fn embed(
        &self,
        py: Python<'_>,
        texts: Vec<Input>,
        pooling: &str,
        normalize: bool,
    ) -> PyResult<Vec<Outcome<Array<f32>>>> {
        let pooling = match pooling {
            "last" => Pooling::Last,
            "mean" => Pooling::Mean,
            other => {
                let reason = format!("option `pooling` is {other}, expected last or mean");
                return Err(with_code("bad-option", &reason));
            }
        };
        rows::embed(py, (&self.engine()?, &self.room), texts, (pooling, normalize))
    }

    /// Log-probabilities of continuations of their prompts.
    fn score(
        &self,
        py: Python<'_>,
        prompts: Vec<Input>,
        continuations: Vec<Input>,
    ) -> PyResult<Vec<Outcome<Score>>> {
        rows::score(py, (&self.engine()?, &self.room), prompts, continuations)
    }

    /// Log-probabilities of all tokens of texts but the first.
    fn score_texts(&self, py: Python<'_>, texts: Vec<Input>) -> PyResult<Vec<Outcome<Score>>> {
        rows::score_texts(py, (&self.engine()?, &self.room), texts)
    }

    /// Tokens of a text, with special ones as the tokenizer adds them.
    fn tokenize<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let tokens = self.engine()?.tokenize(text).map_err(|error| engine_exception(&error))?;
        Ok(tokens.into_pyarray(py))
    }

    /// The text of tokens.
    #[expect(clippy::needless_pass_by_value, reason = "they are read from a list of Python")]
    fn detokenize(&self, tokens: Vec<u32>) -> PyResult<String> {
        self.engine()?.detokenize(&tokens).map_err(|error| engine_exception(&error))
    }

    #[getter]
    fn model_name(&self) -> PyResult<String> {
        Ok(self.engine()?.model_name().to_owned())
    }

    /// Repairs and assumptions made while the model was read.
    #[getter]
    fn warnings(&self) -> PyResult<Vec<String>> {
        Ok(self.engine()?.warnings().to_vec())
    }

    #[getter]
    fn backend(&self) -> PyResult<String> {
        let engine = self.engine()?;
        Ok(format!("{} {}", engine.backend().name(), engine.level()))
    }

    #[getter]
    fn context_length(&self) -> PyResult<usize> {
        Ok(self.engine()?.context_length())
    }

    #[getter]
    fn vocab_size(&self) -> PyResult<usize> {
        Ok(self.engine()?.vocab_size())
    }

    #[getter]
    fn has_chat_template(&self) -> PyResult<bool> {
        Ok(self.engine()?.has_chat_template())
    }
}

impl NativeEngine {
    /// The engine, which a call holds while it runs.
    fn engine(&self) -> PyResult<Engine> {
        if self.process != process::id() {
            return Err(forked(self.process));
        }
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        let closed = || with_code("disposed", &"the model is closed");
        Ok(Engine::clone(engine.as_ref().ok_or_else(closed)?))
    }

    fn begin_stream(
        &self,
        py: Python<'_>,
        prompt: Prompt,
        options: &str,
    ) -> PyResult<NativeStream> {
        let engine = self.engine()?;
        let options = read_options(py, &engine, options)?;
        let stream = py.detach(|| engine.generate(prompt, options));
        Ok(NativeStream::new(stream.map_err(|error| engine_exception(&error))?))
    }
}

impl Drop for NativeEngine {
    fn drop(&mut self) {
        if self.process == process::id()
            && let Ok(engine) = self.engine.get_mut()
        {
            drop(engine.take().map(ManuallyDrop::into_inner));
        }
    }
}

/// The model at a path, of a name in the store, or the embedded one.
fn open(model: Option<&str>, files: Options) -> Result<Model, setun::Error> {
    model.map_or_else(Model::embedded, |model| Model::open_with(model, files))
}

/// The options of an engine, and what the model's files do not say of themselves.
fn read_config(text: &str) -> PyResult<(EngineConfig, Options)> {
    let (mut config, mut files) = (EngineConfig::default(), Options::default());
    let wrong = |reason: &dyn std::fmt::Display| with_code("bad-option", reason);
    let fields: Map<String, Value> = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    for (name, value) in fields {
        let value: OptionValue = serde_json::from_value(value)
            .map_err(|error| wrong(&format!("option `{name}`: {error}")))?;
        match (name.as_str(), value) {
            ("backend", OptionValue::Text(name)) => {
                config.device.backends = vec![name.parse().map_err(|error| exception(&error))?];
            }
            ("pretokenizer", OptionValue::Text(name)) => {
                let name = name.parse().map_err(|error: CheckpointError| wrong(&error))?;
                files.pretokenizer = Some(name);
            }
            (name, value) => config.set(name, &value).map_err(|error| wrong(&error))?,
        }
    }
    Ok((config, files))
}

/// Options whose results the package does not return.
const LEFT_OUT: [&str; 3] = ["prompt_logprobs", "prompt_progress", "top_logprobs"];

/// Reads options, and compiles the constraint among them, which may take long.
fn read_options(py: Python<'_>, engine: &Engine, text: &str) -> PyResult<GenerateOptions> {
    let fields = serde_json::from_str(text).map_err(|error| with_code("bad-option", &error))?;
    py.detach(|| options_from_json(engine, fields, &LEFT_OUT)).map_err(|error| exception(&error))
}

fn messages(text: &str) -> Result<Prompt, setun::Error> {
    messages_from_json(text).map(Prompt::Chat)
}

//! A text that is read while it is generated.

use std::{
    mem::ManuallyDrop,
    process,
    sync::{Mutex, PoisonError},
};

use futures::StreamExt;
use pyo3::prelude::*;
use setun::{EngineError, Event, GenerationStream, TextDelta};

use crate::{
    error::{engine_exception, forked},
    wait::wait,
};

/// A running generation: an iterator of texts with their tokens and log-probabilities.
#[pyclass(frozen)]
pub(crate) struct NativeStream {
    /// Nothing once it has ended. Never dropped in a fork, which has none of the engine's threads.
    stream: Mutex<Option<ManuallyDrop<GenerationStream>>>,
    process: u32,
}

/// Text, token, log-probability.
type Delta = (String, u32, Option<f64>);

impl NativeStream {
    pub(crate) fn new(stream: GenerationStream) -> Self {
        let stream = Mutex::new(Some(ManuallyDrop::new(stream)));
        Self { stream, process: process::id() }
    }

    fn take(&self) -> Option<GenerationStream> {
        if self.process != process::id() {
            return None;
        }
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.take().map(ManuallyDrop::into_inner)
    }
}

#[pymethods]
impl NativeStream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Delta>> {
        if self.process != process::id() {
            return Err(forked(self.process));
        }
        // Nothing is locked while it waits. Another thread that reads meanwhile finds it ended.
        let Some(mut stream) = self.take() else { return Ok(None) };
        let delta = wait(py, async { next_delta(&mut stream).await })?;
        let Some(delta) = delta.transpose().map_err(|error| engine_exception(&error))? else {
            return Ok(None);
        };
        let mut kept = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(ManuallyDrop::new(stream));
        Ok(Some(delta))
    }

    /// Ends the generation.
    fn close(&self) {
        drop(self.take());
    }
}

impl Drop for NativeStream {
    fn drop(&mut self) {
        self.close();
    }
}

async fn next_delta(stream: &mut GenerationStream) -> Option<Result<Delta, EngineError>> {
    loop {
        match stream.next().await? {
            Ok(Event::Text(TextDelta { text, token, logprob, .. })) => {
                return Some(Ok((text, token, logprob)));
            }
            Ok(Event::Done(_)) => return None,
            Ok(Event::Progress(_) | Event::Prompt(_)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}

//! The exception of the package.

use std::fmt::Display;

use pyo3::{create_exception, exceptions::PyRuntimeError, prelude::*};
use setun::{EngineError, Error};

create_exception!(setun, SetunError, PyRuntimeError, "Why a call has failed; `code` sorts it.");

/// The exception for an error, with its code.
pub(crate) fn exception(error: &Error) -> PyErr {
    with_code(error.code().as_str(), error)
}

/// The same for an error of the engine.
pub(crate) fn engine_exception(error: &EngineError) -> PyErr {
    with_code(error.code().as_str(), error)
}

/// An exception with a code of its own.
pub(crate) fn with_code(code: &str, reason: &dyn Display) -> PyErr {
    let exception = SetunError::new_err(reason.to_string());
    Python::attach(|py| match exception.value(py).setattr("code", code) {
        Ok(()) => exception,
        Err(other) => other,
    })
}

/// The exception of a call in a fork of a process that has loaded a model.
pub(crate) fn forked(created_in: u32) -> PyErr {
    let reason = format!(
        "a model was loaded in the process {created_in}, of which this is a fork without its threads: \
         start processes by `spawn`, or load models only after they are forked"
    );
    with_code("forked", &reason)
}

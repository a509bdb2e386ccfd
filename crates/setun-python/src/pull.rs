//! Downloads of models.

use std::{sync::atomic::Ordering, thread, time::Duration};

use pyo3::prelude::*;
use setun::{
    Error,
    hub::{ModelStore, PullOptions, StoreSettings},
};

use crate::{error::exception, wait::raise_signals};

/// The time between two looks at Python's signals.
const INTERVAL: Duration = Duration::from_millis(50);

/// Pulls a model into the store of this machine, or what is missing of it; returns its path.
#[pyfunction]
pub(crate) fn pull(py: Python<'_>, name: &str) -> PyResult<String> {
    py.detach(|| {
        let options = PullOptions::default();
        thread::scope(|scope| {
            let pulling = scope.spawn(|| {
                let store = ModelStore::open(StoreSettings::from_env());
                store.pull(name, &options, &|_| ())?.path(None)
            });
            while !pulling.is_finished() {
                thread::sleep(INTERVAL);
                if let Err(signal) = raise_signals() {
                    options.cancel.store(true, Ordering::Relaxed);
                    return Err(signal);
                }
            }
            let path = pulling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let path = path.map_err(|error| exception(&Error::Hub(error)))?;
            Ok(path.to_string_lossy().into_owned())
        })
    })
}

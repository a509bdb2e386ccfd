//! The module `setun._native`: an engine whose calls take lists and release Python's lock.
//!
//! `python/src/setun` has the classes that people use.

mod engine;
mod error;
mod pull;
mod rows;
mod stream;
mod wait;

use pyo3::prelude::*;

/// The compiled part of the package `setun`.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SetunError", module.py().get_type::<error::SetunError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<engine::NativeEngine>()?;
    module.add_class::<stream::NativeStream>()?;
    module.add_function(wrap_pyfunction!(exp, module)?)?;
    module.add_function(wrap_pyfunction!(pull::pull, module)?)
}

/// The exponential function, with the same bits on every system.
#[pyfunction]
fn exp(value: f64) -> f64 {
    libm::exp(value)
}

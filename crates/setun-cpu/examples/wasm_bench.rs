//! Speed of the products of a step in WebAssembly, as a module without imports: whoever calls it
//! takes the time. `cargo xtask bench-browser --kernels` does, by `web/bench/kernels.mjs`.

#![expect(unsafe_code, reason = "exports of a module have unmangled names")]

use std::sync::Mutex;

use setun_cpu::{
    CpuOptions, Level,
    testing::{Groups, Products, Shape},
};
use setun_ops::Usage;

static PRODUCTS: Mutex<Option<Products>> = Mutex::new(None);

/// Makes this many random matrices; by columns if that is not 0, and with scales for groups of `group` columns of
/// weights and of activations if that is not 0. Returns the multiply-adds of a run with this many rows of activations,
/// or 0 if it cannot be.
#[unsafe(no_mangle)]
pub extern "C" fn prepare(
    outputs: usize,
    columns: usize,
    matrices: usize,
    by_columns: usize,
    rows: usize,
    group: usize,
) -> f64 {
    let usage = if by_columns == 0 { Usage::General } else { Usage::SparseInput };
    let group = Some(group).filter(|columns| *columns > 0);
    let groups = Groups { weights: group, activations: group };
    let options = CpuOptions { level: Level::available().first().copied(), threads: Some(1) };
    let Ok(mut kept) = PRODUCTS.lock() else { return 0.0 };
    // Before there is memory for others.
    *kept = None;
    *kept = Products::new(options, Shape { outputs, columns, usage, matrices, groups }, rows).ok();
    kept.as_ref().map_or(0.0, |products| products.multiply_adds)
}

/// Computes all products once; 1 if that went well.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> u32 {
    let Ok(mut kept) = PRODUCTS.lock() else { return 0 };
    kept.as_mut().is_some_and(|products| products.run().is_ok()).into()
}

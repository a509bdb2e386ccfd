//! Work on tensors by all cores, where there are threads.

/// Rows of a matrix that a thread takes at once.
pub(crate) const RUN_ROWS: usize = 64;

/// Does `work` on each part. In WebAssembly one after the other: a page need not have threads.
pub(crate) fn side_by_side<T: Send>(parts: Vec<T>, work: impl Fn(T) + Send + Sync) {
    #[cfg(not(target_family = "wasm"))]
    {
        use rayon::prelude::*;
        parts.into_par_iter().for_each(work);
    }
    #[cfg(target_family = "wasm")]
    parts.into_iter().for_each(work);
}

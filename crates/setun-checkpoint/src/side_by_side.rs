//! Work on tensors by all cores, where there are threads.

/// Rows of a matrix that a thread takes at once.
pub(crate) const RUN_ROWS: usize = 64;

/// Does `work` on each part. In WebAssembly one after the other, since a page need not have threads, and where there
/// is one thread, to which this one would otherwise hand the work and wait.
pub(crate) fn side_by_side<T: Send>(parts: Vec<T>, work: impl Fn(T) + Send + Sync) {
    #[cfg(not(target_family = "wasm"))]
    if parts.len() > 1 && rayon::current_num_threads() > 1 {
        use rayon::prelude::*;
        parts.into_par_iter().for_each(work);
        return;
    }
    parts.into_iter().for_each(work);
}

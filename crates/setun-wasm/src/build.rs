//! `BuildInfo`: the variant of this build.

use wasm_bindgen::prelude::wasm_bindgen;

/// The variant that this module was built as.
#[wasm_bindgen]
#[derive(Clone, Copy, Debug)]
pub struct BuildInfo;

#[wasm_bindgen]
impl BuildInfo {
    /// Name of the variant: `simd128`, `relaxed`, either with `-threads`, or `webgpu`.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn variant() -> String {
        if cfg!(feature = "webgpu") {
            return "webgpu".to_owned();
        }
        let simd = if cfg!(target_feature = "relaxed-simd") { "relaxed" } else { "simd128" };
        let threads = if cfg!(target_feature = "atomics") { "-threads" } else { "" };
        format!("{simd}{threads}")
    }

    /// Number of compute threads: those of the pool, else 1.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn threads() -> usize {
        #[cfg(all(target_arch = "wasm32", target_feature = "atomics"))]
        return crate::threads::running();
        #[cfg(not(all(target_arch = "wasm32", target_feature = "atomics")))]
        1
    }
}

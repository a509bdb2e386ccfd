//! The builds of the same WebAssembly module.

use clap::ValueEnum;

/// The crates that depend on a variant's instructions: that of the kernels, and that which says what it is.
pub(crate) const KERNELS: [&str; 3] = ["setun-cpu", "setun-wasm", "setun-wasm-module"];

/// One build of `setun-wasm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Variant {
    /// 128-bit SIMD: every current browser, Node.
    Simd128,
    /// Relaxed SIMD: a dot product of bytes in one instruction.
    Relaxed,
    /// 128-bit SIMD and threads, where the page is cross-origin isolated.
    Simd128Threads,
    /// Relaxed SIMD and threads.
    RelaxedThreads,
    /// 128-bit SIMD, and WebGPU where the browser has it.
    #[value(name = "webgpu")]
    WebGpu,
}

impl Variant {
    /// All of them, in the order in which they are built.
    pub(crate) const ALL: [Self; 5] =
        [Self::Simd128, Self::Relaxed, Self::Simd128Threads, Self::RelaxedThreads, Self::WebGpu];

    /// Its name: that of its folder, and what `BuildInfo.variant` says.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Simd128 => "simd128",
            Self::Relaxed => "relaxed",
            Self::Simd128Threads => "simd128-threads",
            Self::RelaxedThreads => "relaxed-threads",
            Self::WebGpu => "webgpu",
        }
    }

    /// True if its memory is shared among threads; its standard library must then be rebuilt.
    pub(crate) fn threads(self) -> bool {
        matches!(self, Self::Simd128Threads | Self::RelaxedThreads)
    }

    /// True if it reaches a GPU.
    pub(crate) fn gpu(self) -> bool {
        self == Self::WebGpu
    }

    /// The cargo features of `setun-wasm`.
    pub(crate) fn features(self) -> &'static [&'static str] {
        if self.gpu() { &["--features", "setun-wasm-module/webgpu"] } else { &[] }
    }

    /// True if it may hold instructions whose result differs between processors.
    pub(crate) fn relaxed(self) -> bool {
        matches!(self, Self::Relaxed | Self::RelaxedThreads)
    }

    /// Target features of [`KERNELS`] alone: the other crates have no use for them, and variants that
    /// differ in nothing else share those.
    pub(crate) fn kernel_features(self) -> Option<&'static str> {
        self.relaxed().then_some("+relaxed-simd")
    }

    /// Flags of rustc for all crates.
    pub(crate) fn rustflags(self) -> String {
        let mut flags = String::from("-C target-feature=+simd128");
        if self.threads() {
            flags += ",+atomics,+bulk-memory,+mutable-globals";
            // JavaScript makes the memory, and may give it a lower maximum than this 4 GiB.
            for argument in [
                "--shared-memory",
                "--import-memory",
                "--max-memory=4294967296",
                "--export=__wasm_init_tls",
                "--export=__tls_size",
                "--export=__tls_align",
                "--export=__tls_base",
                "--export=__heap_base",
            ] {
                flags += " -C link-arg=";
                flags += argument;
            }
        }
        flags
    }

    /// The features that wasm-opt may use: those the module was compiled with.
    pub(crate) fn optimizer_features(self) -> Vec<&'static str> {
        let mut features = vec![
            "--enable-simd",
            "--enable-bulk-memory",
            "--enable-bulk-memory-opt",
            "--enable-mutable-globals",
            "--enable-sign-ext",
            "--enable-nontrapping-float-to-int",
            "--enable-reference-types",
            "--enable-multivalue",
        ];
        if self.relaxed() {
            features.push("--enable-relaxed-simd");
        }
        if self.threads() {
            features.push("--enable-threads");
        }
        features
    }
}

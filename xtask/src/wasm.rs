//! Builds of the WebAssembly variants: compile, bind, shrink, inspect.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::bindgen::Bindgen;
use crate::files::tracked;
use crate::metadata::{Build, Graph};
use crate::node;
use crate::opcodes;
use crate::parallel::parallel_map;
use crate::shell::{root, run, say};
use crate::stamp::{Inputs, if_changed};
use crate::toolchain::{FEWER_FEATURES, SMALLER, TARGET, Toolchain};
use crate::variant::Variant;

/// What wasm-opt does. Higher levels give fewer bytes but less alike ones: of a module of 3.21 MB,
/// 784 kB after brotli, `-O1` makes 776 kB, and `-Oz` 820 kB in many times the time. Functions that
/// are equal after it become one: 1 kB less.
///
/// Without locals moved to where they are read it is 1 % larger, and 0.3 % smaller after brotli. Without
/// assignments of the values that locals have, and with locals in the order of their use, it is 0.4 %
/// smaller after brotli.
const OPTIMIZER: [&str; 6] = [
    "-O1",
    "--duplicate-function-elimination",
    "--rse",
    "--vacuum",
    "--reorder-locals",
    "--skip-pass=simplify-locals",
];

/// What it does last: functions lie beside others with like bodies, by which [`Bindgen::rank`] has named them.
/// In the order of the bodies, which is 1 % smaller than that of names, it is 1.6 % larger.
const ORDER: [&str; 1] = ["--reorder-functions-by-name"];

/// What it does before with the module of grammars: nobody calls the parser's functions for C.
const FEWER_EXPORTS: [&str; 2] = ["--remove-exports=llg_*", "--remove-unused-module-elements"];

/// What nobody calls in the others: searches for overlapping matches, and the random numbers of a tokenizer's
/// dropout, which its checks leave out. Each names functions with a body like no other's.
const UNREACHABLE: [&str; 3] =
    ["find_overlapping_fwd", "which_overlapping_imp", "12BlockRngCore8generate"];

/// What nobody calls in the modules beside them: the functions that write the names of a backtrace, as a
/// module has no symbols. In that of grammars they and what only they need are 8.5 kB after brotli. Not all of their crate: the
/// compiler may use one of its functions for others with the same body.
const UNREACHABLE_IN_MODULES: [&str; 3] =
    ["14rustc_demangle8demangle", "14rustc_demangle12try_demangle", "DemangleStyle"];

/// What is chosen beside a build without threads, so that all of them have the same features of the crates below them,
/// each of which is then compiled once. Alone `hashbrown` would have others with WebGPU, and `log` in the module of
/// grammars.
const BESIDE: [&str; 6] =
    ["--package", "setun-grammar-wasm", "--package", "setun-gpu", "--features", "setun-gpu/webgpu"];

/// Builds `variants`, or all that can be built here if there are none named.
pub(crate) fn build_variants(variants: &[Variant], require_threads: bool) -> Result<Vec<Variant>> {
    let chosen = choose(variants, require_threads)?;
    let plain = chosen.iter().find(|(variant, _)| !variant.threads());
    let plain = plain.map_or_else(Toolchain::plain, |(_, toolchain)| Ok(*toolchain))?;
    node::install("npm")?;
    let bindgen = Bindgen::ready()?;
    // A demo has one build, and no use for what reaches a GPU.
    let with: &[&str] = if chosen.iter().any(|(it, _)| it.gpu()) { &BESIDE } else { &[] };
    let built = by_folder(&chosen, |variant, toolchain| {
        build(variant, toolchain, &bindgen, if variant.threads() { &[] } else { with })?;
        Ok(variant)
    })?;
    build_module(Module::Grammar, plain, &bindgen, with)?;
    build_module(Module::Onnx, plain, &bindgen, &[])?;
    write_list()?;
    Ok(built)
}

/// Compiles the kernels' checks for every variant that can be built here.
pub(crate) fn build_checks(require_threads: bool) -> Result<Vec<(Variant, PathBuf)>> {
    build_example("wasm_tests", &[], require_threads)
}

/// Compiles the kernels' bench for the variants without threads.
pub(crate) fn build_bench() -> Result<Vec<(Variant, PathBuf)>> {
    build_example("wasm_bench", &[Variant::Simd128, Variant::Relaxed], false)
}

/// Compiles an example of `setun-cpu` for `variants`, or for all that can be built here; what
/// reaches a GPU has the kernels of another.
fn build_example(
    example: &str,
    variants: &[Variant],
    require_threads: bool,
) -> Result<Vec<(Variant, PathBuf)>> {
    let what = ["--package", "setun-cpu", "--example", example, "--package", "setun-wasm"];
    let compile = |variant: Variant, toolchain: Toolchain| {
        // With the features of the builds.
        let beside: &[&str] = if variant.threads() { &[] } else { &BESIDE };
        let what = [&what, beside].concat();
        let name = format!("{}-{}", example.replace('_', "-"), variant.name());
        Ok((
            variant,
            compile(&name, variant, toolchain, &what, &format!("examples/{example}.wasm"))?,
        ))
    };
    let mut chosen = choose(variants, require_threads)?;
    chosen.retain(|(variant, _)| !variant.gpu());
    by_folder(&chosen, compile)
}

/// Does `work` for all, in their order for each folder, which Cargo locks, and for the folders at the
/// same time: most of it is a linker's, on one processor.
fn by_folder<Made: Send>(
    chosen: &[(Variant, Toolchain)],
    work: impl Fn(Variant, Toolchain) -> Result<Made> + Sync,
) -> Result<Vec<Made>> {
    let folders: BTreeSet<PathBuf> =
        chosen.iter().map(|(variant, it)| it.folder_of(*variant)).collect();
    let made = parallel_map(&Vec::from_iter(folders), |folder| {
        let is_here = |variant: Variant, it: Toolchain| it.folder_of(variant) == *folder;
        let of_folder =
            chosen.iter().enumerate().filter(|(_, (variant, it))| is_here(*variant, *it));
        of_folder.map(|(place, &(variant, it))| Ok((place, work(variant, it)?))).collect()
    })?;
    let mut all: Vec<(usize, Made)> = made.into_iter().flat_map(|made: Vec<_>| made).collect();
    all.sort_by_key(|(place, _)| *place);
    Ok(all.into_iter().map(|(_, made)| made).collect())
}

/// Lints what no build for this machine compiles: the kernels of the variants without threads, and
/// what reaches a browser's GPU. Debian's second compiler has no lints.
pub(crate) fn lints() -> Result<()> {
    let plain = choose(&[Variant::Simd128, Variant::Relaxed, Variant::WebGpu], false)?;
    for (variant, toolchain) in plain.into_iter().filter(|(_, it)| *it == Toolchain::Own) {
        let mut command = toolchain.cargo("clippy", TARGET, "std,panic_abort");
        let of_own = variant.kernel_features().map(|it| format!(" -C target-feature={it}"));
        let of_own = of_own.unwrap_or_default();
        if variant.gpu() {
            command.args(["--quiet", "--package", "setun-gpu", "--package", "setun-wasm"]);
            command.args(["--lib", "--no-deps", "--features", "setun-wasm/webgpu"]);
        } else {
            command.args(["--quiet", "--package", "setun-cpu", "--lib", "--examples"]);
        }
        command
            .env("CARGO_TARGET_DIR", toolchain.folder().join("lints"))
            .env("RUSTFLAGS", variant.rustflags() + &of_own)
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        run(command.args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

/// The variants to build, each with its compiler.
fn choose(variants: &[Variant], require_threads: bool) -> Result<Vec<(Variant, Toolchain)>> {
    let named = !variants.is_empty();
    let variants = if named { variants } else { &Variant::ALL };
    let threaded = if variants.iter().any(|variant| variant.threads()) {
        Toolchain::threaded()?
    } else {
        None
    };
    // What compiles its own standard library compiles a smaller one for all.
    let plain = if variants.iter().all(|variant| variant.threads()) {
        None
    } else {
        Some(threaded.map_or_else(Toolchain::plain, Ok)?)
    };
    if threaded.is_none() && variants.iter().any(|variant| variant.threads()) {
        const NONE: &str = "no threaded builds here: they need Rust's source, which \
                            `rustup component add rust-src` brings";
        if require_threads || named {
            bail!(NONE);
        }
        say(NONE);
    }
    let toolchain = |variant: Variant| if variant.threads() { threaded } else { plain };
    Ok(variants.iter().filter_map(|&variant| Some((variant, toolchain(variant)?))).collect())
}

/// A module beside the variants, which all of them share and a page fetches when it first needs it. It has no
/// use for threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Module {
    /// Schemas and grammars.
    Grammar,
    /// The reader of ONNX files.
    Onnx,
}

impl Module {
    pub(crate) const ALL: [Self; 2] = [Self::Grammar, Self::Onnx];

    /// The name of its folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grammar => "grammar",
            Self::Onnx => "onnx",
        }
    }

    /// The crate that it is built from.
    fn package(self) -> &'static str {
        match self {
            Self::Grammar => "setun-grammar-wasm",
            Self::Onnx => "setun-onnx-wasm",
        }
    }

    /// Where its bindings are written.
    pub(crate) fn folder(self) -> PathBuf {
        root().join("npm/generated").join(self.name())
    }
}

/// The builds of the npm package: every variant, and the modules beside them.
pub(crate) fn builds() -> Vec<Build> {
    let of_variant = |variant: Variant| Build {
        features: variant.features().iter().skip(1).map(ToString::to_string).collect(),
        rustflags: variant.rustflags(),
        ..Build::new("setun-wasm", TARGET)
    };
    let modules = Module::ALL.map(|module| Build::new(module.package(), TARGET));
    Variant::ALL.into_iter().map(of_variant).chain(modules).collect()
}

/// All crates whose code is linked into any of [`builds`].
pub(crate) fn linked() -> Result<Graph> {
    let mut graph = Graph::new();
    for of_build in parallel_map(&builds(), Build::linked)? {
        for (package, uses) in of_build {
            graph.entry(package).or_default().extend(uses);
        }
    }
    Ok(graph)
}

/// `cargo xtask build-wasm`.
pub(crate) fn run_command(variants: &[Variant], require_threads: bool) -> Result<()> {
    let built = build_variants(variants, require_threads)?;
    for folder in built.into_iter().map(folder).chain(Module::ALL.map(Module::folder)) {
        let size = fs::metadata(folder.join("setun_bg.wasm"))?.len();
        say(&format!("{}: {size} bytes", folder.display()));
    }
    Ok(())
}

/// Where the bindings of `variant` are written.
pub(crate) fn folder(variant: Variant) -> PathBuf {
    root().join("npm/generated").join(variant.name())
}

/// `simd128`, and what else was built before: enough to see the page soon.
pub(crate) fn first_and_built() -> Vec<Variant> {
    let built = |variant: &Variant| folder(*variant).join("setun_bg.wasm").is_file();
    Variant::ALL
        .into_iter()
        .filter(|variant| *variant == Variant::Simd128 || built(variant))
        .collect()
}

fn build(
    variant: Variant,
    toolchain: Toolchain,
    bindgen: &Bindgen,
    with: &[&'static str],
) -> Result<()> {
    let what = [&["--package", "setun-wasm"], variant.features(), with].concat();
    let module = compile(variant.name(), variant, toolchain, &what, "setun_wasm.wasm")?;
    ship(variant.name(), variant, &module, &folder(variant), bindgen)
}

fn build_module(
    module: Module,
    toolchain: Toolchain,
    bindgen: &Bindgen,
    with: &[&'static str],
) -> Result<()> {
    let (variant, package) = (Variant::Simd128, module.package());
    let file = format!("{}.wasm", package.replace('-', "_"));
    let what = match with {
        [] => vec!["--package", package],
        // Compiled with the first variant.
        with => [&["--package", "setun-wasm"], with].concat(),
    };
    let compiled = compile(module.name(), variant, toolchain, &what, &file)?;
    ship(module.name(), variant, &compiled, &module.folder(), bindgen)
}

/// Binds and shrinks a compiled `module` into the folder `output`, and looks at what came out.
fn ship(
    name: &str,
    variant: Variant,
    module: &Path,
    output: &Path,
    bindgen: &Bindgen,
) -> Result<()> {
    let shipped = output.join("setun_bg.wasm");
    let of_grammar = name == Module::Grammar.name();
    let passes = [if of_grammar { &FEWER_EXPORTS[..] } else { &[] }, &OPTIMIZER].concat();
    let is_variant = name == variant.name();
    let unreachable = if is_variant { &UNREACHABLE[..] } else { &UNREACHABLE_IN_MODULES };
    let inputs = Inputs::default()
        .word(&passes)
        .word(ORDER)
        .word(unreachable)
        .word(variant.optimizer_features())
        .files([
            module.to_path_buf(),
            bindgen.path().to_path_buf(),
            root().join("npm/package-lock.json"),
        ])?;
    if_changed(&format!("wasm-{name}"), &[&shipped], &inputs, || {
        say(&format!("binding and shrinking {name}"));
        bindgen.bind(module, output)?;
        bindgen.snip(&shipped, unreachable)?;
        optimize(variant, &shipped, &passes)?;
        bindgen.rank(&shipped)?;
        optimize(variant, &shipped, &ORDER)?;
        opcodes::check(variant, &bindgen.scan(&shipped)?)
    })?;
    Ok(())
}

/// Compiles `what` for `variant` and keeps its `module` under `name`, where the next variant does
/// not overwrite it. Cargo would link again for each variant, so it is asked only after a change.
fn compile(
    name: &str,
    variant: Variant,
    toolchain: Toolchain,
    what: &[&str],
    module: &str,
) -> Result<PathBuf> {
    let folder = toolchain.folder_of(variant);
    let kept = folder.join(name).with_extension("wasm");
    let inputs = Inputs::default()
        .word(toolchain.version()?)
        .word(toolchain.describe())
        .word(variant.rustflags())
        .word(SMALLER)
        .word(FEWER_FEATURES)
        .word(variant.kernel_features())
        .word(what)
        .files(sources()?)?;
    if_changed(&format!("module-{name}"), &[&kept], &inputs, || {
        say(&format!("compiling {name} ({})", toolchain.describe()));
        run(toolchain.cargo_build(variant)?.args(["--quiet", "--profile", "wasm"]).args(what))?;
        fs::copy(folder.join(TARGET).join("wasm").join(module), &kept)?;
        Ok(())
    })?;
    Ok(kept)
}

/// Everything that a module is compiled from.
fn sources() -> Result<Vec<PathBuf>> {
    const PLACES: [&str; 5] = ["crates", "shaders", ".cargo", "Cargo.toml", "Cargo.lock"];
    let is_source = |path: &PathBuf| PLACES.iter().any(|place| path.starts_with(place));
    Ok(tracked()?.into_iter().filter(is_source).map(|path| root().join(path)).collect())
}

/// Runs wasm-opt on a bound module in place. It leaves no names.
fn optimize(variant: Variant, module: &Path, passes: &[&str]) -> Result<()> {
    let optimizer = root().join("npm/node_modules/binaryen/bin/wasm-opt");
    let shrunk = module.with_extension("shrunk");
    let mut command = node::node()?;
    command.arg(&optimizer).arg(module).arg("-o").arg(&shrunk).args(passes);
    // Only what the module was compiled for: the optimizer must not add a proposal.
    command.arg("--mvp-features").args(variant.optimizer_features());
    run(command.arg("--strip-producers"))
        .context("wasm-opt comes with the npm package binaryen")?;
    fs::rename(&shrunk, module)?;
    Ok(())
}

/// `npm/generated/variants.json`: the variants that are there.
fn write_list() -> Result<()> {
    let there: Vec<&str> = Variant::ALL
        .into_iter()
        .filter(|variant| folder(*variant).join("setun_bg.wasm").is_file())
        .map(Variant::name)
        .collect();
    let list = serde_json::to_string(&there)? + "\n";
    crate::files::write_if_changed(&root().join("npm/generated/variants.json"), list.as_bytes())
}

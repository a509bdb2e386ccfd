//! Compilers for other targets: WebAssembly, 64-bit ARM, other systems.
//!
//! Plain builds need a standard library for the target; threaded WebAssembly needs its source, to
//! compile it again with atomics. Where that is there, plain builds beside it are smaller for it, too. Both come with rustup, or on Debian as packages of a second
//! compiler with its matching source.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::machine::{has_packages, install_packages, installing, may_install};
use crate::shell::{cargo, find_program, output, program, say, succeeds, target};
use crate::variant::{KERNELS, Variant};
use crate::without_features::{Without, leave_out};

/// The target of every WebAssembly build.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's compiler for browsers, its source, and a linker.
const DEBIAN_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-19"];

/// Where a compiler has the source of the standard library.
const LIBRARY: &str = "lib/rustlib/src/rust/library";

/// Flags of rustc for modules that pages download: panics do not say where they are, and what derives
/// `Debug` writes its name alone.
pub(crate) const SMALLER: [&str; 2] = ["-Zlocation-detail=none", "-Zfmt-debug=shallow"];

/// The standard library's own sorts, numbers and searches as they are smallest, where it is compiled from
/// source.
const SMALLER_LIBRARY: &str = "build-std-features=optimize_for_size";

/// Features that modules for pages are compiled without: engines that search a text in less time than others, with
/// the same matches. `fancy-regex` asks for them, and regex-automata takes another engine where one is not there.
/// Tables of Unicode that no tokenizer's pattern names: in which version a character came, and where graphemes, words
/// and sentences end. A pattern that names one is an error of these modules.
pub(crate) const FEWER_FEATURES: [Without; 3] = [
    ("aho-corasick", &["perf-literal"]),
    (
        "regex-automata",
        &[
            "dfa-build",
            "dfa-search",
            "dfa-onepass",
            "nfa-backtrack",
            "perf-literal-substring",
            "perf-literal-multisubstring",
        ],
    ),
    ("regex-syntax", &["unicode-age", "unicode-segment"]),
];

/// A compiler that can build for another target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// The compiler that runs this tool, with its own standard library.
    Own,
    /// The compiler that runs this tool; the standard library is compiled from its source.
    OwnFromSource,
    /// Debian's second compiler; the standard library is compiled from its source.
    Debian,
}

impl Toolchain {
    /// The compiler for variants without threads; installs what it may.
    pub(crate) fn plain() -> Result<Self> {
        Self::required(TARGET)
    }

    /// A compiler for a target.
    pub(crate) fn required(target: &str) -> Result<Self> {
        Self::for_target(target)?.with_context(|| {
            format!(
                "Rust's target {target} is not installed and could not be added. Install it with:\n  \
                 rustup target add {target}   (or on Debian, as root: apt-get install \
                 --no-install-recommends {})",
                DEBIAN_PACKAGES.join(" ")
            )
        })
    }

    /// A compiler for a target, if there is one or it may be installed.
    fn for_target(target: &str) -> Result<Option<Self>> {
        if sysroot()?.join("lib/rustlib").join(target).join("lib").is_dir() {
            return Ok(Some(Self::Own));
        }
        if find_program("rustup").is_some() {
            let _alone = installing()?;
            say(&format!("adding Rust's target {target}"));
            if succeeds(program("rustup").args(["target", "add", target])) {
                return Ok(Some(Self::Own));
            }
            say("rustup cannot add it here");
        }
        if has_packages(&DEBIAN_PACKAGES) {
            return Ok(Some(Self::Debian));
        }
        if has_source()? {
            return Ok(Some(Self::OwnFromSource));
        }
        if may_install() {
            install_packages(&DEBIAN_PACKAGES)?;
            return Ok(Some(Self::Debian));
        }
        Ok(None)
    }

    /// The compiler for threaded variants, if there is one or it may be installed.
    pub(crate) fn threaded() -> Result<Option<Self>> {
        if has_source()? {
            return Ok(Some(Self::OwnFromSource));
        }
        if may_install()
            && let Err(error) = install_packages(&DEBIAN_PACKAGES)
        {
            say(&format!("{error:#}"));
        }
        Ok(has_packages(&DEBIAN_PACKAGES).then_some(Self::Debian))
    }

    /// Who compiles, for messages.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Own => "this compiler",
            Self::OwnFromSource => "this compiler, standard library from source",
            Self::Debian => "Debian's rustc-web, standard library from source",
        }
    }

    /// The compiler's own account of itself.
    pub(crate) fn version(self) -> Result<String> {
        match self {
            Self::Own | Self::OwnFromSource => output(rustc().arg("-vV")),
            Self::Debian => {
                output(program("/usr/bin/rustc").arg("-vV").env_remove("LD_LIBRARY_PATH"))
            }
        }
    }

    /// Where it builds a variant. Those with threads share nothing with the others, and are built at the
    /// same time.
    pub(crate) fn folder_of(self, variant: Variant) -> PathBuf {
        self.folder().join(if variant.threads() { "threads" } else { "plain" })
    }

    /// Where it builds: two compilers in one folder would build everything again.
    pub(crate) fn folder(self) -> PathBuf {
        let compiler = match self {
            Self::Own | Self::OwnFromSource => "own",
            Self::Debian => "debian",
        };
        target().join("wasm").join(compiler)
    }

    /// `cargo build` for `variant`, ready for its package and profile.
    pub(crate) fn cargo_build(self, variant: Variant) -> Result<Command> {
        let mut command = self.cargo("build", TARGET, "std,panic_abort");
        let flags = format!("{} {}", variant.rustflags(), SMALLER.join(" "));
        let flags: Vec<String> = flags.split(' ').map(str::to_owned).collect();
        if self != Self::Own {
            command.args(["-Z", SMALLER_LIBRARY]);
        }
        command
            .env("CARGO_TARGET_DIR", self.folder_of(variant))
            .env("RUSTC_BOOTSTRAP", "1") // for SMALLER
            // A path of this machine may have a space.
            .env(
                "CARGO_ENCODED_RUSTFLAGS",
                [flags, self.remapped_paths()?].concat().join("\u{1f}"),
            );
        if self == Self::Debian {
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld-19");
        }
        leave_out(&mut command, "wasm", &FEWER_FEATURES)?;
        if let Some(features) = variant.kernel_features() {
            for package in KERNELS {
                let flags = format!("rustflags=['-Ctarget-feature={features}']");
                command.args(["--config", &format!("profile.wasm.package.{package}.{flags}")]);
            }
        }
        Ok(command)
    }

    /// Flags with which panic messages name files by crate alone: a module does not depend on the folders
    /// of the machine that built it, and is smaller.
    fn remapped_paths(self) -> Result<Vec<String>> {
        let cargo = env::var_os("CARGO_HOME").map(PathBuf::from);
        let cargo = cargo.or_else(|| Some(env::home_dir()?.join(".cargo")));
        let registries = cargo.map(|cargo| cargo.join("registry/src").read_dir());
        let mut folders = vec![];
        for registry in registries.into_iter().flatten().flatten() {
            folders.push(registry?.path());
        }
        folders.push(match self {
            Self::Own | Self::OwnFromSource => sysroot()?.join(LIBRARY),
            Self::Debian => Path::new("/usr").join(LIBRARY),
        });
        let flag = |folder: PathBuf| format!("--remap-path-prefix={}=", folder.display());
        Ok(folders.into_iter().map(flag).collect())
    }

    /// Its cargo with a subcommand for a target; `library` is what to compile of the standard
    /// library where that is not there for the target.
    pub(crate) fn cargo(self, subcommand: &str, target: &str, library: &str) -> Command {
        let mut command = match self {
            Self::Own | Self::OwnFromSource => cargo(),
            Self::Debian => {
                let mut command = program("/usr/bin/cargo");
                command
                    .env("RUSTC", "/usr/bin/rustc")
                    // Set by the cargo that runs this tool, for its own compiler.
                    .env_remove("LD_LIBRARY_PATH")
                    .env_remove("RUSTUP_TOOLCHAIN");
                command
            }
        };
        command.args([subcommand, "--locked", "--target", target]);
        if self != Self::Own {
            // Stable compilers know the flag, and refuse it from builds that are not Rust's own.
            command.args(["-Z", &format!("build-std={library}")]).env("RUSTC_BOOTSTRAP", "1");
        }
        command
    }
}

/// Whether the source of Rust's standard library is there.
pub(crate) fn has_source() -> Result<bool> {
    Ok(sysroot()?.join(LIBRARY).join("Cargo.lock").is_file())
}

/// Where the compiler and its libraries are.
pub(crate) fn sysroot() -> Result<PathBuf> {
    let printed = output(rustc().args(["--print", "sysroot"]))?;
    Ok(Path::new(printed.trim()).to_path_buf())
}

/// Clippy's arguments in the form in which `cargo clippy -- -D warnings` passes them on.
const CLIPPY_ARGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// Makes clippy compile the packages of a workspace, with every warning an error: nothing else is compiled again to be
/// linted.
pub(crate) fn with_clippy(command: &mut Command) -> Result<&mut Command> {
    let clippy = sysroot()?.join("bin/clippy-driver");
    ensure!(
        clippy.is_file(),
        "no {}; install it with: rustup component add clippy",
        clippy.display()
    );
    Ok(command.env("RUSTC_WORKSPACE_WRAPPER", clippy).env("CLIPPY_ARGS", CLIPPY_ARGS))
}

/// The compiler of the cargo that runs this tool.
pub(crate) fn rustc() -> Command {
    program(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// The target that the compiler runs on.
pub(crate) fn host() -> Result<String> {
    let version = output(rustc().arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

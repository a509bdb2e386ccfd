//! Set-up, builds, demo, tests and house rules of setun: `cargo xtask help`.
//!
//! Every command says in plain lines what it does, installs only what it says it installs, and
//! keeps what it made: a second run is quick.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

mod bench_browser;
mod bindgen;
mod browser;
mod cache;
mod crate_packages;
mod demo;
mod dependency_cache;
mod embed_model;
mod files;
mod gpu_report;
mod licences;
mod machine;
mod metadata;
mod node;
mod opcodes;
mod options;
mod package;
mod parallel;
mod reproduce;
mod rivals;
mod rustdoc_pages;
mod sbom;
mod shell;
mod sizes;
mod stamp;
mod test;
mod tidy;
mod toolchain;
mod variant;
mod wasm;
mod without_features;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::variant::Variant;

/// Set-up, builds, demo, tests and house rules of setun.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Checks the house rules.
    Tidy,
    /// Writes the files that are made from the option table: TypeScript, documents, test cases.
    Options,
    /// Builds the WebAssembly variants into npm/generated.
    BuildWasm {
        /// Variants to build. Default: all that this system can build.
        #[arg(long, value_delimiter = ',')]
        variants: Vec<Variant>,
        /// Fail where the threaded variants cannot be built.
        #[arg(long)]
        require_threads: bool,
    },
    /// Builds the npm package into target/npm/setun.tgz, and checks its size and licences.
    Package,
    /// Builds the package and the page, serves it and opens the browser.
    Demo(demo::Options),
    /// Measures the WebAssembly builds in a browser, in turn with wllama.
    BenchBrowser(bench_browser::Options),
    /// Measures this machine's GPUs: report.json and report.md in target/gpu-report.
    GpuReport(gpu_report::Options),
    /// Sets up what is missing and runs every test.
    Test(test::Options),
    /// Writes the licences of everything linked into the `setun` command.
    Licences {
        /// The file to write.
        #[arg(long, default_value = "target/THIRD_PARTY_LICENSES")]
        to: PathBuf,
        /// Features that the command is built with beside the default ones.
        #[arg(long, value_delimiter = ',')]
        features: Vec<String>,
        /// Include what is linked into the `setun-batch` command.
        #[arg(long)]
        batch: bool,
    },
    /// Writes bills of materials in `CycloneDX`: of the crate, the commands and the npm package.
    Sbom {
        /// The folder to write into.
        #[arg(long, default_value = "target/sbom")]
        to: PathBuf,
        /// Features that the command is built with beside the default ones.
        #[arg(long, value_delimiter = ',')]
        features: Vec<String>,
    },
    /// Builds the WebAssembly modules here and in another folder, and compares every byte.
    Reproduce,
    /// Packs every published crate, and checks its files and size.
    CratePackages {
        /// Compile each from its package, too.
        #[arg(long)]
        compile: bool,
    },
    /// Copies compiled dependencies from the target folder: a clean checkout may begin with them.
    SaveDependencies {
        /// The folder to copy to.
        #[arg(long)]
        to: PathBuf,
    },
    /// Bundles a model folder in Hugging Face's layout into one .safetensors file.
    EmbedModel {
        /// The folder.
        #[arg(long)]
        from: PathBuf,
        /// The file to write.
        #[arg(long, default_value = "crates/setun/embedded/stories.safetensors")]
        to: PathBuf,
    },
}

fn main() -> ExitCode {
    if let Some(status) = rustdoc_pages::play().or_else(without_features::play) {
        return status;
    }
    let result = match Arguments::parse().command {
        Command::Tidy => tidy::run(),
        Command::Options => options::run(),
        Command::BuildWasm { variants, require_threads } => {
            wasm::run_command(&variants, require_threads || shell::in_ci())
        }
        Command::Package => package::run_command(),
        Command::Demo(options) => demo::run_command(&options),
        Command::BenchBrowser(options) => bench_browser::run_command(&options),
        Command::GpuReport(options) => gpu_report::run_command(&options),
        Command::Test(options) => test::run(&options),
        Command::Licences { to, features, batch } => licences::run_command(&to, &features, batch),
        Command::Sbom { to, features } => sbom::run_command(&to, &features),
        Command::Reproduce => reproduce::check().map(|_| ()),
        Command::CratePackages { compile } => crate_packages::check(compile),
        Command::SaveDependencies { to } => dependency_cache::save(&to),
        Command::EmbedModel { from, to } => embed_model::run(&from, &to),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

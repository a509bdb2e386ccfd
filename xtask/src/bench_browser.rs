//! Speed of the packed WebAssembly builds in a browser, in turn with that of others.
//!
//! The others are packages of `web/bench` alone, which nothing else installs: wllama, which is
//! llama.cpp as WebAssembly, transformers.js and web-llm. What these need in Node, and what has a
//! script at installation, is replaced there by an alias. `web/bench/bench.mjs` measures; its
//! results are put together here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::browser;
use crate::demo;
use crate::node::{install, node};
use crate::rivals::{self, Story};
use crate::shell::{output, root, run, say, show, target};
use crate::stamp::{Inputs, if_changed};
use crate::wasm;

/// Options of `cargo xtask bench-browser`.
#[derive(Args)]
pub(crate) struct Options {
    /// wllama's model, a GGUF file of at most 2 GB; may be given several times.
    #[arg(long, value_name = "FILE")]
    peer_model: Vec<PathBuf>,
    /// setun's model: a .safetensors file, or a folder in Hugging Face's layout.
    #[arg(long, value_name = "PATH", conflicts_with = "shape")]
    model: Option<PathBuf>,
    /// A random model of this shape, as `setun synth` writes it.
    #[arg(long, default_value = "small")]
    shape: String,
    /// Threads, one number after the other.
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Vec<u32>,
    /// Tokens of a prompt.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(2..))]
    prompt: u32,
    /// Tokens that are generated.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..))]
    generate: u32,
    /// Rounds, after a warm-up.
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Measure the story model beside wllama, transformers.js and web-llm: downloads, first token, speed.
    #[arg(long, conflicts_with_all = ["peer_model", "model", "shape", "prompt"])]
    rivals: bool,
    /// Measure the products of a step alone, on one thread, and no model.
    #[arg(long, conflicts_with_all = ["peer_model", "model", "shape", "threads", "json", "rivals"])]
    kernels: bool,
    /// Print a JSON array instead of a table.
    #[arg(long)]
    json: bool,
}

/// What an engine reached, as `bench.mjs` reports it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Measured {
    name: String,
    build: String,
    threads: u32,
    rounds: Vec<Round>,
    /// Milliseconds to the first token, in fresh pages.
    starts: Vec<f64>,
    /// Bytes of scripts and WebAssembly after brotli.
    download: f64,
}

/// Speeds are in tokens a second.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Round {
    prompt_tokens: u32,
    prefill: f64,
    decode: f64,
    /// Of engines that report their tokens.
    tokens_hash: Option<String>,
}

/// A row of the table: medians.
#[derive(Serialize)]
struct Row {
    name: String,
    build: String,
    threads: u32,
    download_kilobytes: f64,
    first_token_milliseconds: f64,
    prompt_tokens: u32,
    prefill_tokens_per_second: f64,
    decode_tokens_per_second: f64,
    /// Speeds of setun's relaxed build with as many threads, by these.
    prefill_ratio: f64,
    decode_ratio: f64,
}

/// `cargo xtask bench-browser`.
pub(crate) fn run_command(options: &Options) -> Result<()> {
    if options.kernels {
        return kernels(options);
    }
    let story = options.rivals.then(rivals::story).transpose()?;
    let model = story.as_ref().map_or_else(|| model(options), |story| Ok(story.folder.clone()))?;
    demo::install_package(&[])?;
    install("web/bench")?;
    let measured = measure(options, &model, story.as_ref())?;
    let hash = agree(&measured)?;
    let mut rows: Vec<Row> = measured.iter().map(row).collect();
    rows.sort_by_key(|row| row.threads);
    compare(&mut rows);
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print(&rows);
        println!("setun's tokens are the same in every build: {hash}");
    }
    Ok(())
}

/// The products alone, which have no package around them.
fn kernels(options: &Options) -> Result<()> {
    install("web")?;
    let mut command = bench("kernels.mjs")?;
    command.arg(options.repeat.to_string());
    for (variant, module) in wasm::build_bench()? {
        command.arg(format!("{}={}", variant.name(), module.display()));
    }
    show(&mut command)
}

/// A script of `web/bench`.
fn bench(script: &str) -> Result<Command> {
    let mut command = node()?;
    command.current_dir(root().join("web/bench")).env("CHROME", browser::chrome()?).arg(script);
    Ok(command)
}

/// The model named, or a random one, written once.
fn model(options: &Options) -> Result<PathBuf> {
    if let Some(path) = &options.model {
        return path.canonicalize().with_context(|| format!("no model at {}", path.display()));
    }
    let shape = options.shape.as_str();
    let folder = target().join("bench-browser").join(shape);
    let inputs = Inputs::default().word(shape);
    if_changed(&format!("bench-{shape}"), &[&folder.join("config.json")], &inputs, || {
        say(&format!("writing a random model into {}", folder.display()));
        std::fs::create_dir_all(&folder)?;
        let layout = if shape.starts_with("bonsai-") { "mlx" } else { "hf" };
        run(rivals::setun(&["synth", "--shape", shape, "--to", layout, "--force"]).arg(&folder))
    })?;
    Ok(folder)
}

fn measure(options: &Options, model: &Path, story: Option<&Story>) -> Result<Vec<Measured>> {
    let peers: Result<Vec<PathBuf>> = options
        .peer_model
        .iter()
        .chain(story.map(|story| &story.gguf))
        .map(|path| path.canonicalize().with_context(|| format!("no model at {}", path.display())))
        .collect();
    let mut request = json!({
        "model": model,
        "peers": peers?,
        "threads": options.threads,
        "prompt": options.prompt,
        "generate": options.generate,
        "repeat": options.repeat,
    });
    // Absent for models that have no tokenizer.
    if story.is_some() {
        request["text"] = rivals::PROMPT.into();
    }
    let mut command = bench("bench.mjs")?;
    let reported = output(command.arg(request.to_string()).stderr(Stdio::inherit()))?;
    serde_json::from_str(&reported).context("bench.mjs reports no results")
}

/// All builds of setun must give the same tokens in every round.
fn agree(measured: &[Measured]) -> Result<String> {
    let rounds = measured.iter().flat_map(|engine| &engine.rounds);
    let hashes: BTreeSet<&String> = rounds.filter_map(|round| round.tokens_hash.as_ref()).collect();
    let mut hashes = hashes.into_iter();
    match (hashes.next(), hashes.next()) {
        (Some(hash), None) => Ok(hash.clone()),
        (None, _) => bail!("no engine reported its tokens"),
        (Some(one), Some(other)) => bail!("setun's builds differ: tokens {one} and {other}"),
    }
}

fn row(measured: &Measured) -> Row {
    let speeds = |of: fn(&Round) -> f64| median(measured.rounds.iter().map(of).collect());
    Row {
        name: measured.name.clone(),
        build: measured.build.clone(),
        threads: measured.threads,
        download_kilobytes: measured.download / 1000.0,
        first_token_milliseconds: median(measured.starts.clone()),
        prompt_tokens: measured.rounds.first().map_or(0, |round| round.prompt_tokens),
        prefill_tokens_per_second: speeds(|round| round.prefill),
        decode_tokens_per_second: speeds(|round| round.decode),
        prefill_ratio: 1.0,
        decode_ratio: 1.0,
    }
}

/// Ratios of setun's relaxed build, which comes first, to every row.
fn compare(rows: &mut [Row]) {
    for rows in rows.chunk_by_mut(|a, b| a.threads == b.threads) {
        let Some((first, rest)) = rows.split_first_mut() else { continue };
        for row in rest {
            row.prefill_ratio = first.prefill_tokens_per_second / row.prefill_tokens_per_second;
            row.decode_ratio = first.decode_tokens_per_second / row.decode_tokens_per_second;
        }
    }
}

fn print(rows: &[Row]) {
    println!(
        "threads  engine                           download  first     prefill  ratio     decode  ratio"
    );
    for row in rows {
        println!(
            "{:<8} {:<32} {:>8.0} {:>6.0} {:>11.2} {:>6.2} {:>10.2} {:>6.2}",
            row.threads,
            format!("{} ({})", row.name, row.build),
            row.download_kilobytes,
            row.first_token_milliseconds,
            row.prefill_tokens_per_second,
            row.prefill_ratio,
            row.decode_tokens_per_second,
            row.decode_ratio,
        );
    }
    println!("kB of scripts and WebAssembly after brotli; ms to the first token of a fresh page;");
    println!("tokens a second; medians; ratio: setun relaxed by this row; NaN: not measured");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        len if len % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn reported(hashes: [&str; 2]) -> Vec<Measured> {
        let engine = |name: &str, hash: Value, speed: u32| {
            json!({ "name": name, "build": "b", "threads": 1, "starts": [9], "download": 9, "rounds": [
                { "promptTokens": 8, "prefill": 30, "decode": speed, "tokensHash": hash },
                { "promptTokens": 8, "prefill": 10, "decode": speed, "tokensHash": hash },
            ]})
        };
        let [first, second] = hashes;
        let engines = json!([
            engine("setun relaxed", first.into(), 40),
            engine("setun simd128", second.into(), 20),
            engine("wllama", Value::Null, 4),
        ]);
        serde_json::from_value(engines).unwrap()
    }

    #[test]
    fn rows_are_compared_with_the_first() {
        let mut rows: Vec<Row> = reported(["a", "a"]).iter().map(row).collect();
        compare(&mut rows);
        let ratios: Vec<f64> = rows.iter().map(|row| row.decode_ratio).collect();
        assert_eq!(ratios, [1.0, 2.0, 10.0]);
        assert_eq!(rows[0].prefill_tokens_per_second, 20.0);
    }

    #[test]
    fn builds_that_differ_are_an_error() {
        assert_eq!(agree(&reported(["a", "a"])).unwrap(), "a");
        assert!(agree(&reported(["a", "b"])).is_err());
    }
}

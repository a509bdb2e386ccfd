//! The demo page: built on the packed tarball, served, and opened or checked.

use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::browser;
use crate::files::under;
use crate::node::{install, node, npm};
use crate::package;
use crate::shell::{built_with_tests, output, program, root, run, say, show};
use crate::stamp::{Inputs, if_changed};
use crate::variant::Variant;
use crate::wasm;

/// How long the server may take to answer.
const SERVER_PATIENCE: Duration = Duration::from_mins(1);

/// Options of `cargo xtask demo`.
#[derive(Args)]
pub(crate) struct Options {
    /// Ask the page's own controls in a headless browser, and print the text shown on the page.
    #[arg(long)]
    check: bool,
    /// The prompt.
    #[arg(long, requires = "check")]
    prompt: Option<String>,
    /// Sampling temperature.
    #[arg(long, requires = "check")]
    temperature: Option<f32>,
    /// Seed of the sampler.
    #[arg(long, requires = "check")]
    seed: Option<u64>,
    /// Most tokens to produce.
    #[arg(long, requires = "check")]
    max_tokens: Option<usize>,
    /// Backend that the page uses. The name of a build makes that one alone.
    #[arg(long, requires = "check")]
    backend: Option<String>,
    /// Print a JSON object: text, tokens, backend, build, times, requests.
    #[arg(long, requires = "check")]
    json: bool,
}

impl Options {
    /// The build that is requested, or enough to see the page soon.
    fn variants(&self) -> Vec<Variant> {
        let named = self.backend.as_deref().and_then(|name| Variant::from_str(name, true).ok());
        named.map_or_else(wasm::first_and_built, |variant| vec![variant])
    }

    /// A short story, as an object.
    fn story(prompt: &str, temperature: f32, seed: u64, backend: &str) -> Self {
        Self {
            check: true,
            prompt: Some(prompt.into()),
            temperature: Some(temperature),
            seed: Some(seed),
            max_tokens: Some(80),
            backend: Some(backend.into()),
            json: true,
        }
    }
}

/// `cargo xtask demo`.
pub(crate) fn run_command(options: &Options) -> Result<()> {
    build(&options.variants())?;
    let mut server = Server::start()?;
    if options.check {
        return check(&server.address, options);
    }
    say(&format!("the page is at {} (Ctrl-C ends)", server.address));
    if !browser::open(&server.address) {
        say("no browser could be opened: open the address yourself");
    }
    server.process.wait()?;
    Ok(())
}

/// Builds the package with the variants named, or with all, and on its tarball the page.
fn build(variants: &[Variant]) -> Result<()> {
    install_package(variants)?;
    let built = root().join("web/dist/index.html");
    let sources = Inputs::default().files([package::tarball()])?.files(page_sources()?)?;
    if_changed("web-page", &[&built], &sources, || {
        say("building the page");
        run(npm("web")?.args(["run", "--silent", "build"]))
    })?;
    Ok(())
}

/// Builds the package with the variants named, or with all, and installs its tarball in `web/`.
pub(crate) fn install_package(variants: &[Variant]) -> Result<()> {
    package::build_with(variants)?;
    install("web")?;
    let tarball = package::tarball();
    let packed = Inputs::default().files([tarball.clone()])?;
    if_changed("web-setun", &[&root().join("web/node_modules/setun")], &packed, || {
        say("installing the packed tarball in web/");
        run(npm("web")?.args(["install", "--no-save", "--loglevel=error"]).arg(&tarball))
    })?;
    Ok(())
}

/// The files of `web/` that git knows.
fn page_sources() -> Result<Vec<PathBuf>> {
    let known = crate::files::tracked()?;
    let there = under(&root().join("web/public"))?;
    let known =
        known.into_iter().filter(|path| path.starts_with("web")).map(|path| root().join(path));
    Ok(known.chain(there).collect())
}

/// The page and the `setun` command tell the same stories, to the byte, on every backend that
/// the page offers, and the bits of its view Parity are those of the command.
pub(crate) fn equals_the_command() -> Result<()> {
    const STORIES: [(&str, f32, u64, &str); 4] = [
        ("The little boat", 0.8, 11, "auto"),
        ("Zoë said: \"hé!\" 🐉", 1.3, 20_261_120, "simd128"),
        ("Once upon a time", 0.0, 0, "relaxed"),
        ("Tom and Lily", 1.0, 3, "scalar"),
    ];
    build(&[])?;
    let setun = built_with_tests()?.join("setun");
    parity_equals_the_command(&setun)?;
    let server = Server::start()?;
    for (prompt, temperature, seed, backend) in STORIES {
        let options = Options::story(prompt, temperature, seed, backend);
        let page: Value = serde_json::from_str(&output(&mut checker(&server.address, &options)?)?)
            .context("the page's report is JSON")?;
        let mut command = program(&setun);
        command.args(["run", "--max-tokens", "80", "--seed", &seed.to_string()]);
        command.args(["--temperature", &temperature.to_string(), prompt]);
        let native = output(&mut command)?;
        let (found, expected) = (page["text"].as_str(), native.strip_suffix('\n'));
        say(&format!("{} on the page, {} tokens: {found:?}", page["build"], page["tokens"]));
        if found != expected || found.is_none_or(str::is_empty) {
            bail!("on {backend} the page says {found:?}, the command {expected:?}");
        }
    }
    Ok(())
}

/// The tokens and log-probabilities that were computed while the page was built are those of the
/// command, to the bit.
fn parity_equals_the_command(setun: &Path) -> Result<()> {
    let path = root().join("web/dist/parity.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let page: Value = serde_json::from_str(&text).context("parity.json is JSON")?;
    let prompt = page["prompt"].as_str().context("parity.json has a prompt")?;
    let mut command = program(setun);
    command.args(["run", "--json", "--logprobs", "--temperature", "0"]);
    command.args(["--max-tokens", &page["maxTokens"].to_string(), prompt]);
    let (found, expected) = (steps(&text)?, steps(&output(&mut command)?)?);
    let length = found.len().max(expected.len());
    if let Some(at) = (0..length).find(|&at| found.get(at) != expected.get(at)) {
        let (found, expected) = (found.get(at), expected.get(at));
        bail!("parity: step {at} of the page is {found:?}, of the command {expected:?}");
    }
    if length == 0 {
        bail!("parity: nothing was generated");
    }
    say(&format!("parity: {length} tokens and the bits of their log-probabilities are equal"));
    Ok(())
}

/// The tokens in a JSON text, each with the bits of its log-probability.
///
/// `serde_json` reads a number to within its last bit; the standard library reads it exactly.
fn steps(json: &str) -> Result<Vec<(u32, u64)>> {
    let tokens = numbers::<u32>(json, "\"token\":")?;
    let logprobs = numbers::<f64>(json, "\"logprob\":")?;
    if tokens.len() != logprobs.len() {
        bail!("{} tokens have {} log-probabilities", tokens.len(), logprobs.len());
    }
    Ok(tokens.into_iter().zip(logprobs.into_iter().map(f64::to_bits)).collect())
}

/// The numbers behind a key. In a text of the JSON the key's quotes would be escaped.
fn numbers<T: FromStr<Err: Error + Send + Sync + 'static>>(
    json: &str,
    key: &str,
) -> Result<Vec<T>> {
    let values = json.split(key).skip(1);
    let values = values.map(|rest| rest.split([',', '}']).next().unwrap_or_default().trim());
    values.map(|value| value.parse().with_context(|| format!("{key} {value}"))).collect()
}

fn check(address: &str, options: &Options) -> Result<()> {
    show(&mut checker(address, options)?)
}

/// The command that asks the page for what the options say.
fn checker(address: &str, options: &Options) -> Result<Command> {
    let mut command = node()?;
    command.current_dir(root().join("web")).env("CHROME", browser::chrome()?).args([
        "check.mjs",
        "--url",
        address,
    ]);
    let values = [
        ("--prompt", options.prompt.clone()),
        ("--temperature", options.temperature.map(|value| value.to_string())),
        ("--seed", options.seed.map(|value| value.to_string())),
        ("--max-tokens", options.max_tokens.map(|value| value.to_string())),
        ("--backend", options.backend.clone()),
    ];
    for (name, value) in values {
        if let Some(value) = value {
            // In one word: a prompt may begin with a dash.
            command.arg(format!("{name}={value}"));
        }
    }
    if options.json {
        command.arg("--json");
    }
    Ok(command)
}

/// The page's server; it ends with this value.
pub(crate) struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Serves the built page on a free port, and waits until it answers.
    pub(crate) fn start() -> Result<Self> {
        let port = free_port()?;
        let process = node()?
            .current_dir(root().join("web"))
            .args(["node_modules/vite/bin/vite.js", "preview", "--strictPort"])
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the page's server")?;
        let mut server = Self { process, address: format!("http://127.0.0.1:{port}/") };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = server.process.try_wait()? {
                bail!("the page's server ended: {status}");
            }
            if begun.elapsed() > SERVER_PATIENCE {
                bail!("the page's server does not answer");
            }
            sleep(Duration::from_millis(50));
        }
        Ok(server)
    }
}

/// A free port. Systems give out higher ones, so it is hardly taken before it is used.
fn free_port() -> Result<u16> {
    let mut ports = (31_000..32_700).cycle().skip(process::id() as usize % 1700).take(1700);
    ports.find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()).context("no port is free")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing more to do then.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_to_the_bit_and_not_out_of_texts() {
        let events = "{\"type\":\"text\",\"text\":\"\\\"token\\\":7}\",\"token\":5,\"logprob\":-0.1}\n\
                      {\"token\":9,\"logprob\":-1e-7}\n{\"type\":\"done\"}";
        let expected = vec![(5, (-0.1f64).to_bits()), (9, (-1e-7f64).to_bits())];
        assert_eq!(steps(events).unwrap(), expected);
        assert!(steps("{\"token\":5}").unwrap_err().to_string().contains("1 tokens"));
    }
}

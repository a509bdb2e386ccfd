//! Official clients of the APIs that `setun serve` has, in Python and Node, against the command, and
//! requests that schemathesis makes of its description.

mod metrics;
mod node;
pub(super) mod rust;
mod splitter;

use std::env;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use super::seed::is_full;
use super::stage::{Stage, count, skip};
use super::totals::Totals;
use super::wheels::{self, python};
use crate::shell::{built_with_tests, program, root, run, target};

const FOLDER: &str = "crates/setun-serve/tests/clients";

/// What the clients' wheels are named in, with their hashes.
const REQUIREMENTS: &str = "requirements.txt";

/// A model with recorded logits. That of most scripts has its shapes and tokenizer, and drawn weights.
const FIXTURE: &str = "tests/fixtures/golden/real-tinystories-1m";

const SCRIPTS: [&str; 5] = [
    "openai_client.py",
    "responses_client.py",
    "anthropic_client.py",
    "ollama_client.py",
    "langchain_client.py",
];

/// Log-likelihoods by lm-evaluation-harness.
const EVALUATION: &str = "lm_eval_client.py";

/// Spans by the messages of OpenTelemetry's package, from a server of its own.
const TRACES: &str = "traces.py";

/// Requests that schemathesis makes of the description: some drawn ones of each route, and in a full check those at the bounds
/// of each field, too. The variable is for another number.
const DESCRIPTION: &str = "description.py";
const CASES: &str = "SETUN_CASES";
const PLAIN_CASES: &str = "300";
const FULL_CASES: &str = "10000";

/// Texts of these cases are short.
const SHORT: [&str; 2] = ["--max-output-tokens", "4"];

/// Variables that are arguments of each script: how many requests and calls are drawn. The scripts know `SETUN_SEED`.
const ARGUMENTS: [(&str, &str); 2] = [("SETUN_DRAWS", "--draws"), ("SETUN_CALLS", "--calls")];

/// The stage.
pub(super) fn stage() -> Stage {
    wheels::stage("clients", test)
}

fn test(totals: &mut Totals) -> Result<()> {
    let command = built_with_tests()?.join("setun");
    let Some(packages) = wheels::fetched("clients", &script(REQUIREMENTS))? else {
        let tests = SCRIPTS.len() + 3; // the description, the evaluation and the spans
        return skip(tests, "the clients cannot be had from PyPI", totals);
    };
    metrics::test(&command, totals)?;
    count(python(&packages).arg(script(TRACES)).arg(&command), totals)?;
    let model = target().join("clients").join("model");
    run(python(&packages).arg(script("make_model.py")).arg(FIXTURE).arg(&model))?;
    for folder in [None, Some(&*model)] {
        let mut server = Server::start(&command, folder, &[])?;
        if folder.is_some() {
            server.url = splitter::start(&server.url)?;
        }
        for name in SCRIPTS {
            let mut script = python(&packages);
            script.arg(self::script(name));
            count(server.given_to(&mut script, &command, folder), totals)?;
        }
        node::test(&server, &command, folder, totals)?;
    }
    test_evaluation(&command, &packages, totals)?;
    test_description(&command, &model, &packages, totals)
}

/// Texts of models with recorded logits, with the cache that they were made with. The script starts
/// the servers of all but the first.
fn test_evaluation(command: &Path, packages: &Path, totals: &mut Totals) -> Result<()> {
    let folder = root().join(FIXTURE);
    let server = Server::start(command, Some(&folder), &["--kv", "f32"])?;
    let mut script = python(packages);
    script.env("TQDM_DISABLE", "1"); // it draws progress
    script.arg(self::script(EVALUATION)).args([&server.url, &server.model]);
    script.arg("--command").arg(command).arg("--folder").arg(folder);
    count(&mut script, totals)
}

/// Drawn requests of the server's description.
fn test_description(
    command: &Path,
    model: &Path,
    packages: &Path,
    totals: &mut Totals,
) -> Result<()> {
    let server = Server::start(command, Some(model), &SHORT)?;
    let cases = if is_full() { FULL_CASES } else { PLAIN_CASES };
    let cases = env::var(CASES).unwrap_or_else(|_| cases.to_owned());
    let mut script = python(packages);
    script.current_dir(target().join("clients")); // it keeps examples
    script.arg(self::script(DESCRIPTION)).args([&server.url, &server.model, "--cases", &cases]);
    count(&mut script, totals)
}

/// What every draw begins with; 0 if nothing says so, so that a run by hand is the same twice.
fn seed() -> u64 {
    env::var("SETUN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

fn script(name: &str) -> PathBuf {
    root().join(FOLDER).join(name)
}

/// A server that ends when it is dropped.
struct Server {
    process: Child,
    url: String,
    model: String,
}

impl Server {
    /// Serves the embedded model, or that of a folder.
    fn start(command: &Path, folder: Option<&Path>, options: &[&str]) -> Result<Self> {
        let mut serve = program(command);
        serve.args(["serve", "--port", "0"]).args(options);
        serve.stdout(Stdio::null()).stderr(Stdio::piped());
        if let Some(folder) = folder {
            serve.arg("--model").arg(folder);
        }
        let mut server = Self::spawned(&mut serve)?;
        let mut said = BufReader::new(server.process.stderr.take().context("a pipe")?);
        server.read_address(&mut said)?;
        // What it says later is shown, and never fills the pipe.
        thread::spawn(move || io::copy(&mut said, &mut io::stderr()));
        Ok(server)
    }

    fn spawned(serve: &mut Command) -> Result<Self> {
        let process = serve.spawn().context("cannot start `setun serve`")?;
        Ok(Self { process, url: String::new(), model: String::new() })
    }

    /// Waits until it says where it listens.
    fn read_address(&mut self, said: &mut BufReader<ChildStderr>) -> Result<()> {
        let mut all = String::new();
        while said.read_line(&mut all)? > 0 {
            let line = all.lines().last().unwrap_or_default();
            let Some(line) = line.strip_prefix("serving ") else { continue };
            let (model, url) = line.split_once(" at ").context("a name and an address")?;
            (self.model, self.url) = (model.to_owned(), url.to_owned());
            return Ok(());
        }
        bail!("`setun serve` ended:\n{all}")
    }

    /// The arguments of a script: this server, the command with its folder, and what is drawn.
    fn given_to<'a>(
        &self,
        script: &'a mut Command,
        command: &Path,
        folder: Option<&Path>,
    ) -> &'a mut Command {
        script.args([&self.url, &self.model]).arg("--command").arg(command);
        if let Some(folder) = folder {
            script.arg("--folder").arg(folder);
        }
        for (variable, argument) in ARGUMENTS {
            script.args(env::var(variable).map(|value| format!("{argument}={value}")));
        }
        script
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended by itself needs neither.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

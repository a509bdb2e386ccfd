//! Official clients of the APIs that `setun serve` has, in Python and Node, against the command, and
//! requests that schemathesis makes of its description.

pub(super) mod rust;
mod splitter;

use std::env;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use super::stage::Check;
use super::wheels::{self, pip_install, python};
use crate::machine::{install_packages, may_install};
use crate::node::{install, node};
use crate::shell::{built_with_tests, find_program, program, root, run, succeeds, target};

const FOLDER: &str = "crates/setun-serve/tests/clients";

/// The file that names the clients' wheels with their hashes; of the scripts, the description, the evaluation and the
/// spans.
const REQUIREMENTS: &str = "crates/setun-serve/tests/clients/requirements.txt";
const TESTS: (usize, &str) = (SCRIPTS.len() + 3, "the clients");

/// A model with recorded logits. That of most scripts has its shapes and tokenizer, and drawn weights.
const FIXTURE: &str = "tests/fixtures/golden/real-tinystories-1m";

const SCRIPTS: [&str; 5] = [
    "openai_client.py",
    "responses_client.py",
    "anthropic_client.py",
    "ollama_client.py",
    "langchain_client.py",
];

/// The clients for JavaScript, in Node, and the folder of their packages.
const NODE_SCRIPTS: [&str; 2] = ["node/openai.mjs", "node/ai-sdk.mjs"];
const NODE_FOLDER: &str = "crates/setun-serve/tests/clients/node";

/// Libraries of agents, their script, and what keeps them: they have other versions of the clients.
const AGENTS: &str = "crates/setun-serve/tests/clients/requirements-agents.txt";
const AGENTS_SCRIPT: &str = "agent_libraries.py";
const AGENTS_FOLDER: &str = "clients/agents";

/// Tasks of lm-evaluation-harness with scores of transformers, and what runs them.
const EVALUATION: &str = "tests/fixtures/evaluation";
const HARNESS: [&str; 2] = ["lm-eval[api]==0.4.13", "transformers==5.24.0"];

/// Requests that schemathesis makes of the description: some drawn ones of each route, and in a full check those at the bounds
/// of each field, too. The variable is for another number.
const CASES: &str = "SETUN_CASES";
const PLAIN_CASES: &str = "300";
const FULL_CASES: &str = "10000";

/// Texts of these cases are short.
const SHORT: [&str; 2] = ["--max-output-tokens", "4"];

/// Variables that are arguments of each script: how many requests and calls are drawn. The scripts know `SETUN_SEED`.
const ARGUMENTS: [(&str, &str); 2] = [("SETUN_DRAWS", "--draws"), ("SETUN_CALLS", "--calls")];

/// The program that judges metrics, its Debian package, and names of metrics, as `--metrics-compat` has them.
const PROMTOOL: &str = "promtool";
const PROMETHEUS: &str = "prometheus";
const METRICS: [&str; 2] = ["setun", "vllm"];

pub(super) fn test(check: &mut Check) -> Result<()> {
    let Some(packages) = wheels::of_stage(check, REQUIREMENTS, TESTS)? else { return Ok(()) };
    let command = built_with_tests()?.join("setun");
    test_metrics(check, &command)?;
    // Spans by the messages of OpenTelemetry's package, from a server of its own.
    check.count(python(&packages).arg(script("traces.py")).arg(&command))?;
    let model = target().join("clients").join("model");
    make_model(python(&packages), &model)?;
    let files = target().join("clients").join("files");
    let files = ["--files", files.to_str().context("a folder in UTF-8")?];
    for folder in [None, Some(&*model)] {
        let mut server = Server::start(&command, folder, &files)?;
        if folder.is_some() {
            server.url = splitter::start(&server.url)?;
        }
        for name in SCRIPTS {
            let mut client = python(&packages);
            check.count(server.given_to(client.arg(script(name))))?;
        }
        test_node(check, &server)?;
        if folder.is_some() && check.options.is_full() {
            test_agents(check, &server)?;
        }
    }
    // Texts of a model with recorded logits, by lm-evaluation-harness, with the cache that they were made with. The
    // script starts the servers of other models.
    let model_with_logits = root().join(FIXTURE);
    let server = Server::start(&command, Some(&model_with_logits), &["--kv", "f32"])?;
    let mut evaluation = python(&packages);
    evaluation.env("TQDM_DISABLE", "1"); // it draws progress
    check.count(server.given_to(evaluation.arg(script("lm_eval_client.py"))))?;
    if check.options.is_full() {
        test_the_harness(check, &server)?;
    }
    drop(server);
    // Drawn requests of the description.
    let server = Server::start(&command, Some(&model), &[SHORT, files].concat())?;
    let cases = if check.options.is_full() { FULL_CASES } else { PLAIN_CASES };
    let cases = env::var(CASES).unwrap_or_else(|_| cases.to_owned());
    let mut description = python(&packages);
    description.current_dir(target().join("clients")); // it keeps examples
    description.arg(script("description.py")).args([&server.url, &server.model]);
    check.count(description.args(["--cases", &cases]))
}

/// Libraries of agents, each of which ends turns.
fn test_agents(check: &mut Check, server: &Server) -> Result<()> {
    let Some(packages) = wheels::fetched(AGENTS_FOLDER, AGENTS)? else {
        return check.skip(1, "the libraries of agents cannot be had from PyPI");
    };
    check.count(server.given_to(python(&packages).arg(script(AGENTS_SCRIPT))))
}

/// The documented command of lm-evaluation-harness, whole, against scores of transformers.
fn test_the_harness(check: &mut Check, server: &Server) -> Result<()> {
    let folder = target().join("clients").join("harness");
    if !succeeds(pip_install().args(["--upgrade", "--target"]).arg(&folder).args(HARNESS)) {
        return check.skip(1, "lm-evaluation-harness cannot be had from PyPI");
    }
    let mut command = python(&folder);
    command.env("TQDM_DISABLE", "1").env("HF_HUB_OFFLINE", "1");
    command.current_dir(root().join(EVALUATION).join("tasks")); // which name their data
    command.arg(root().join(EVALUATION).join("check.py")).args([&server.url, &server.model]);
    check.pass(&mut command)
}

/// The model of most scripts, which has a chat template.
pub(super) fn make_model(mut python: Command, model: &Path) -> Result<()> {
    run(python.arg(script("make_model.py")).arg(FIXTURE).arg(model))
}

/// Metrics of a server, which promtool judges where it is installed or may be.
fn test_metrics(check: &mut Check, command: &Path) -> Result<()> {
    if find_program(PROMTOOL).is_none() && may_install() {
        install_packages(&[PROMETHEUS])?;
    }
    let Some(tool) = find_program(PROMTOOL) else {
        return check.skip(METRICS.len(), "there is no promtool to judge metrics");
    };
    METRICS.into_iter().try_for_each(|names| {
        let server = Server::start(command, None, &["--metrics-compat", names])?;
        let mut python = program("python3");
        check.count(python.arg(script("metrics.py")).arg(&server.url).arg(&tool))
    })
}

fn test_node(check: &mut Check, server: &Server) -> Result<()> {
    if find_program("node").is_none() {
        return check.skip(NODE_SCRIPTS.len(), "there is no Node for its clients");
    }
    install(NODE_FOLDER)?;
    NODE_SCRIPTS
        .into_iter()
        .try_for_each(|name| check.count(server.given_to(node()?.arg(script(name)))))
}

fn script(name: &str) -> PathBuf {
    root().join(FOLDER).join(name)
}

/// A server of a command with a model's folder, or with the embedded model. It ends when it is dropped.
struct Server<'a> {
    command: &'a Path,
    folder: Option<&'a Path>,
    process: Child,
    url: String,
    model: String,
}

impl<'a> Server<'a> {
    /// Starts it, and waits until it says where it listens.
    fn start(command: &'a Path, folder: Option<&'a Path>, options: &[&str]) -> Result<Self> {
        let mut serve = program(command);
        serve.args(["serve", "--port", "0"]).args(options).args(argument("--model", folder));
        serve.stdout(Stdio::null()).stderr(Stdio::piped());
        let process = serve.spawn().context("cannot start `setun serve`")?;
        let mut server =
            Self { command, folder, process, url: String::new(), model: String::new() };
        let mut said = BufReader::new(server.process.stderr.take().context("a pipe")?);
        let mut all = String::new();
        while said.read_line(&mut all)? > 0 {
            let line = all.lines().last().unwrap_or_default();
            let Some(line) = line.strip_prefix("serving ") else { continue };
            let (model, url) = line.split_once(" at ").context("a name and an address")?;
            (server.model, server.url) = (model.to_owned(), url.to_owned());
            // What it says later is shown, and never fills the pipe.
            thread::spawn(move || io::copy(&mut said, &mut io::stderr()));
            return Ok(server);
        }
        bail!("`setun serve` ended:\n{all}")
    }

    /// The arguments of a script: this server, the command with its folder, and what is drawn.
    fn given_to<'b>(&self, script: &'b mut Command) -> &'b mut Command {
        script.args([&self.url, &self.model]).arg("--command").arg(self.command);
        script.args(argument("--folder", self.folder));
        for (variable, argument) in ARGUMENTS {
            script.args(env::var(variable).map(|value| format!("{argument}={value}")));
        }
        script
    }
}

fn argument<'a>(name: &'static str, folder: Option<&'a Path>) -> impl Iterator<Item = &'a Path> {
    folder.into_iter().flat_map(move |folder| [Path::new(name), folder])
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // One that has ended by itself needs neither.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

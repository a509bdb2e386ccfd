//! Arguments, drawn requests, and the command's own answers.

use std::env;
use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

const WORDS: [&str; 10] =
    ["a", "cat", "Once upon a time", "the", "little", "girl", "said", "été", "\"Hé!\"", "."];

/// What the arguments say: `BASE_URL MODEL --command PATH`, and options of the other scripts.
pub(crate) struct Given {
    pub(crate) base_url: String,
    pub(crate) model: String,
    command: String,
    /// Without it the embedded model is served, which has no chat template.
    pub(crate) folder: Option<String>,
    pub(crate) draws: usize,
    pub(crate) calls: usize,
    pub(crate) seed: u64,
    state: u64,
}

/// A prompt, and options by the names of the API and vLLM.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) prompt: String,
    pub(crate) options: Map<String, Value>,
}

impl Given {
    pub(crate) fn read(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut given = Self {
            base_url: String::new(),
            model: String::new(),
            command: String::new(),
            folder: None,
            draws: 3,
            calls: 6,
            seed: env::var("SETUN_SEED").map_or(Ok(0), |seed| seed.parse())?,
            state: 0,
        };
        let words: Vec<String> = arguments
            .flat_map(|word| word.splitn(2, '=').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let mut words = words.into_iter();
        let mut next = || words.next();
        given.base_url = next().context("an address")?;
        given.model = next().context("a model")?;
        while let Some(name) = next() {
            let value = next().with_context(|| format!("{name} has no value"))?;
            match &*name {
                "--command" => given.command = value,
                "--folder" => given.folder = Some(value),
                "--draws" => given.draws = value.parse()?,
                "--calls" => given.calls = value.parse()?,
                "--seed" => given.seed = value.parse()?,
                _ => anyhow::bail!("{name} is not known"),
            }
        }
        given.state = given.seed;
        Ok(given)
    }

    /// A number below a bound: splitmix64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::try_from(self.below(values.len() as u64)).unwrap_or(0)]
    }

    pub(crate) fn draw(&mut self) -> Request {
        let prompt: Vec<&str> = (0..=self.below(12)).map(|_| self.one(&WORDS)).collect();
        let options = [
            ("max_tokens", json!(4 + self.below(21))),
            ("temperature", json!(self.one(&[0.0, 0.5, 1.0, 1.25]))),
            ("top_p", json!(self.one(&[1.0, 0.75]))),
            ("top_k", json!(2 + self.below(60))),
            ("min_p", json!(self.one(&[0.0, 0.0625]))),
            ("frequency_penalty", json!(self.one(&[0.0, 0.5]))),
            ("seed", json!(self.below(1 << 31))),
        ];
        let options = options.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        Request { prompt: prompt.join(" "), options }
    }

    fn by_command(&self, name: &str, request: &Request, rest: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new(&self.command);
        command.arg(name);
        if let Some(folder) = &self.folder {
            command.args(["--model", folder]);
        }
        for (name, value) in &request.options {
            command.arg(format!("--{}={value}", name.replace('_', "-")));
        }
        let mut child = command.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let messages = json!([{"role": "user", "content": request.prompt}]).to_string();
        // `run` reads nothing.
        drop(child.stdin.take().context("a pipe")?.write_all(messages.as_bytes()));
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "`setun {name}`: {}", output.status);
        Ok(output.stdout)
    }

    /// The text of `setun run`, and why it ended.
    pub(crate) fn run(&self, request: &Request) -> Result<(String, String)> {
        let printed = self.by_command("run", request, &["--json", "--", &request.prompt])?;
        let (mut text, mut reason) = (String::new(), String::new());
        for line in printed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event: Value = serde_json::from_slice(line)?;
            if event["type"] == "text" {
                text += event["text"].as_str().context("a text")?;
            }
            event["finish_reason"].as_str().unwrap_or_default().clone_into(&mut reason);
        }
        Ok((text, reason))
    }

    /// The text of `setun chat` for the prompt as a user's message.
    pub(crate) fn chat(&self, request: &Request) -> Result<String> {
        let printed = self.by_command("chat", request, &["--messages", "-"])?;
        let text = String::from_utf8(printed)?;
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }
}

//! Another engine's own benchmark, run in turn with ours.
//!
//! The programs are those of the family of `llama-bench`, which print a JSON array with the speed
//! of a prompt and that of generation. Each call loads the model, warms up by itself and measures
//! once.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use serde::Serialize;
use serde_json::{Deserializer, Value};

use super::round::median;
use crate::error::CliError;

/// Another engine with a model.
#[derive(Debug)]
pub(super) struct Peer {
    name: String,
    program: PathBuf,
    model: PathBuf,
    prefill: Vec<f64>,
    decode: Vec<f64>,
}

/// What it reached, with one sequence.
#[derive(Debug, Serialize)]
pub(super) struct PeerReport {
    pub(super) name: String,
    /// The median.
    pub(super) prefill_tokens_per_second: Option<f64>,
    /// The median.
    pub(super) decode_tokens_per_second: Option<f64>,
    /// Our speed by its.
    pub(super) prefill_ratio: Option<f64>,
    /// Our speed by its.
    pub(super) decode_ratio: Option<f64>,
}

impl Peer {
    /// From `--peer NAME=PROGRAM` and `--peer-model FILE`, each given as often, in this order.
    pub(super) fn all(peers: &[String], models: &[PathBuf]) -> Result<Vec<Self>, CliError> {
        if peers.len() != models.len() {
            return Err(CliError::Usage(format!(
                "--peer is given {} times and --peer-model {} times, expected a model for each peer",
                peers.len(),
                models.len()
            )));
        }
        let peers = peers.iter().zip(models).map(|(peer, model)| {
            let (name, program) = peer
                .split_once('=')
                .ok_or_else(|| CliError::Usage(format!("--peer {peer}: expected NAME=PROGRAM")))?;
            let (name, program, model) = (name.to_owned(), program.into(), model.clone());
            Ok(Self { name, program, model, prefill: vec![], decode: vec![] })
        });
        peers.collect()
    }

    /// Measures once.
    pub(super) fn measure(
        &mut self,
        threads: usize,
        prompt: usize,
        generate: usize,
    ) -> Result<(), CliError> {
        let mut command = Command::new(&self.program);
        command.arg("-m").arg(&self.model).args(["-r", "1", "-o", "json"]);
        for (name, value) in [("-p", prompt), ("-n", generate), ("-t", threads)] {
            command.args([name, &value.to_string()]);
        }
        let failed = |why: String| CliError::Peer { name: self.name.clone(), why };
        let output = command.stdin(Stdio::null()).output().map_err(|error| {
            failed(format!("cannot start `{}`: {error}", self.program.display()))
        })?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().rev().find(|line| !line.trim().is_empty());
            return Err(failed(format!("{}: {}", output.status, last.unwrap_or("no message"))));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let (prefill, decode) = speeds(&text)
            .ok_or_else(|| failed("its output is not the JSON of llama-bench".to_owned()))?;
        self.prefill.push(prefill);
        self.decode.push(decode);
        Ok(())
    }

    /// The medians since the last report, beside our own speeds.
    pub(super) fn report(&mut self, prefill: f64, decode: Option<f64>) -> PeerReport {
        let (its_prefill, its_decode) =
            (median(std::mem::take(&mut self.prefill)), median(std::mem::take(&mut self.decode)));
        PeerReport {
            name: self.name.clone(),
            prefill_tokens_per_second: its_prefill,
            decode_tokens_per_second: its_decode,
            prefill_ratio: its_prefill.map(|its| prefill / its),
            decode_ratio: its_decode.and_then(|its| Some(decode? / its)),
        }
    }
}

/// Tokens a second of the prompt and of generation. Some programs print more before the array.
fn speeds(text: &str) -> Option<(f64, f64)> {
    let array = &text[text.find('[')?..];
    let tests: Vec<Value> = Deserializer::from_str(array).into_iter().next()?.ok()?;
    let speed = |is_wanted: fn(&Value) -> bool| {
        tests.iter().find(|test| is_wanted(test)).and_then(|test| test["avg_ts"].as_f64())
    };
    let prefill = speed(|test| test["n_gen"] == 0)?;
    let decode = speed(|test| test["n_prompt"] == 0)?;
    Some((prefill, decode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_found_in_what_is_printed() {
        assert_eq!(speeds("warming up [\n]"), None);
        let printed = r#"loaded
            [ { "n_prompt": 128, "n_gen": 0, "avg_ts": 70.5 },
              { "n_prompt": 0, "n_gen": 64, "avg_ts": 25.25 } ]
            done"#;
        assert_eq!(speeds(printed), Some((70.5, 25.25)));
    }

    #[test]
    fn every_peer_has_a_model() {
        let peer = |peers: &[&str], models: &[&str]| {
            let peers: Vec<_> = peers.iter().map(|&peer| peer.to_owned()).collect();
            Peer::all(&peers, &models.iter().map(PathBuf::from).collect::<Vec<_>>())
        };
        assert_eq!(peer(&["a=b", "c=d=e"], &["x", "y"]).unwrap()[1].program, PathBuf::from("d=e"));
        for (peers, models) in [(&["a=b"][..], &[][..]), (&[], &["x"]), (&["a"], &["x"])] {
            assert!(matches!(peer(peers, models), Err(CliError::Usage(_))), "{peers:?}");
        }
    }
}

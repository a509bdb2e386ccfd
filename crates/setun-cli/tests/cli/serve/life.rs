//! Many models in little memory: random requests, a corrupt model, and kills in the middle of loads.

use std::{
    collections::BTreeSet,
    fs,
    io::Read,
    net::TcpStream,
    path::{Path, PathBuf},
    thread,
};

use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};
use setun::{Engine, GenerateOptions, Model};

use super::Server;
use crate::support::{PROMPT, STORIES, model};

/// Models, of which the last is corrupt.
const MODELS: usize = 20;

/// Models that fit the memory budget.
const FIT: u64 = 3;

const TOKENS: usize = 8;

/// The tensor in which models differ.
const MOVED: &str = "model.layers.0.mlp.down_proj.weight";

#[test]
fn twenty_models_in_the_memory_of_three_outlive_kills_and_a_corrupt_one() {
    live(1, 4, 10);
}

#[test]
#[ignore = "4,000 requests and 25 kills"]
fn twenty_models_outlive_many_kills() {
    live(25, 8, 500);
}

/// Models in a folder, and what the engine tells with each alone.
struct Zoo {
    folder: tempfile::TempDir,
    texts: Vec<String>,
}

fn live(kills: usize, clients: usize, requests: usize) {
    let zoo = Zoo::new();
    let budget = zoo.bytes_of_one() * FIT + 1;
    let budget_text = budget.to_string();
    let start = || zoo.serve(&budget_text);
    let mut left = kills;
    while left > 0 {
        // A kill that came after the last load does not count.
        left -= usize::from(zoo.kill_in_mid_load(start(), left));
    }
    let server = start();
    thread::scope(|scope| {
        let (zoo, server) = (&zoo, &server);
        for client in 0..clients {
            scope.spawn(move || {
                let mut draw = draws(client as u64);
                for number in (0..requests).map(|_| draw()) {
                    let answer = server.ask("POST /v1/completions", &Zoo::request(number));
                    zoo.check(number, &answer);
                }
            });
        }
    });
    let page = server.body("GET /metrics", "");
    let sum = |name: &str| (0..MODELS - 1).map(|number| metric(&page, name, number)).sum::<u64>();
    assert!(sum("model_loaded") <= FIT && sum("model_budget_bytes") <= budget, "{page}");
    assert_eq!(sum("model_loads_total"), sum("model_loaded") + sum("model_unloads_total"));
    assert!(sum("model_unloads_total") > 0 && sum("model_load_failures_total") == 0, "{page}");
    assert_eq!(metric(&page, "model_loads_total", MODELS - 1), 0);
    assert!(metric(&page, "model_load_failures_total", MODELS - 1) > 0);
    server.end();
}

impl Zoo {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |number| folder.path().join(name(number));
        (0..MODELS).for_each(|number| write_model(&path(number), number));
        let texts: Vec<_> = (0..MODELS - 1).map(|number| text_of(path(number))).collect();
        let distinct = texts.iter().collect::<BTreeSet<_>>().len();
        assert!(distinct > MODELS / 2, "{texts:?}");
        let corrupt = path(MODELS - 1).join("model.safetensors");
        let weights = fs::read(&corrupt).expect("weights");
        fs::write(&corrupt, &weights[..weights.len() / 2]).expect("a file");
        Self { folder, texts }
    }

    fn serve(&self, budget: &str) -> Server {
        let models = self.folder.path().to_string_lossy();
        Server::start(&["--models", &models, "--memory-budget", budget], "20 models")
    }

    /// What a model takes of the budget.
    fn bytes_of_one(&self) -> u64 {
        let server = self.serve("1GiB");
        self.check(0, &server.ask("POST /v1/completions", &Self::request(0)));
        metric(&server.body("GET /metrics", ""), "model_budget_bytes", 0)
    }

    /// Requests all models at once and kills the server when one has answered. Whether others had not.
    fn kill_in_mid_load(&self, mut server: Server, seed: usize) -> bool {
        let ask = |number| server.open("POST /v1/completions", &Self::request(number));
        let mut asked: Vec<_> = (0..MODELS).map(ask).collect();
        let first = seed % (MODELS - 1);
        assert_eq!(asked[first].peek(&mut [0]).expect("an answer"), 1);
        server.child.kill().expect("it runs");
        server.child.wait().expect("its end");
        let whole = asked.iter_mut().enumerate().filter_map(|(number, socket)| {
            let answer = answer(socket)?;
            self.check(number, &answer);
            Some(answer)
        });
        whole.count() < MODELS
    }

    fn request(number: usize) -> String {
        let body = json!({"model": name(number), "prompt": PROMPT, "seed": 3, "temperature": 1,
            "min_tokens": TOKENS, "max_tokens": TOKENS});
        body.to_string()
    }

    /// The text is the model's own; the corrupt one is refused each time in the same words.
    #[track_caller]
    fn check(&self, number: usize, answer: &Value) {
        if let Some(text) = self.texts.get(number) {
            let told = (&answer["model"], &answer["choices"][0]["text"]);
            assert_eq!(told, (&json!(name(number)), &json!(text)));
            return;
        }
        assert_eq!(answer["error"]["code"], "model_not_loaded", "{answer}");
        let message = answer["error"]["message"].as_str().expect("words");
        assert!(message.contains(&name(number)) && message.contains("safetensors"), "{message}");
    }
}

fn name(number: usize) -> String {
    format!("model-{number:02}")
}

/// The story model with some packed weights moved on by some bytes: it tells something else.
fn write_model(folder: &Path, number: usize) {
    fs::create_dir(folder).expect("a folder");
    let story = PathBuf::from(model(STORIES));
    for file in ["config.json", "generation_config.json", "tokenizer.json"] {
        fs::copy(story.join(file), folder.join(file)).expect(file);
    }
    let mut weights = fs::read(story.join("model.safetensors")).expect("weights");
    let (length, header) = SafeTensors::read_metadata(&weights).expect("a header");
    let tensor = header.info(MOVED).expect(MOVED);
    assert_eq!(tensor.dtype, Dtype::U8);
    let (start, end) = tensor.data_offsets;
    weights[8 + length..][start..end].rotate_left(number);
    fs::write(folder.join("model.safetensors"), weights).expect("a file");
}

fn text_of(folder: PathBuf) -> String {
    let engine = Engine::builder(Model::open(folder).expect("a model")).build().expect("an engine");
    let options = GenerateOptions::new().seed(3).temperature(1.0);
    let options = options.min_tokens(TOKENS).max_tokens(TOKENS);
    engine.complete(PROMPT, options).expect("a text").text
}

/// The answer of a server that may have been killed before it was whole.
fn answer(socket: &mut TcpStream) -> Option<Value> {
    let mut bytes = vec![];
    let _ = socket.read_to_end(&mut bytes); // it may be reset
    let (_, body) = std::str::from_utf8(&bytes).ok()?.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}

/// Numbers of models.
fn draws(seed: u64) -> impl FnMut() -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    move || {
        state = state.wrapping_mul(25_214_903_917).wrapping_add(11);
        usize::try_from(state >> 33).expect("31 bits") % MODELS
    }
}

/// The value of a metric of a model.
fn metric(page: &str, metric: &str, number: usize) -> u64 {
    let line = format!("setun_{metric}{{model_name=\"{}\"}} ", name(number));
    let at = page.find(&line).unwrap_or_else(|| panic!("{line} in {page}")) + line.len();
    page[at..].lines().next().and_then(|value| value.parse().ok()).expect("a number")
}

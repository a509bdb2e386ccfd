//! The inputs that are kept for fuzz targets, each within its bounds.
//!
//! Only a full check compiles the targets for a fuzzer. Here their crates are compiled already.

#[expect(unreachable_pub, reason = "the fuzz targets share it between crates")]
#[path = "../../../fuzz/src/harness.rs"]
mod harness;
#[expect(unreachable_pub, reason = "the fuzz targets share them between crates")]
#[path = "../../../fuzz/src/subjects"]
mod subjects {
    pub(crate) mod chat_template;
    pub(crate) mod equal_bits;
    pub(crate) mod grammar;
    pub(crate) mod hub_answers;
    pub(crate) mod input;
    pub(crate) mod manifest;
    pub(crate) mod random_model;
    pub(crate) mod readers;
    pub(crate) mod scratch;
    pub(crate) mod session;
    pub(crate) mod tokenizer;
    pub(crate) mod tool_calls;
}

use std::{fs, panic, path::Path, process::abort, sync::Mutex, thread};

use harness::{MemoryBound, run_bounded};
use setun::GenerateOptions;
use setun_hub as hub;
use setun_tests::trial;

/// Without an optimiser, frames are several times as large as in a browser.
const STACK_BYTES: usize = 8 << 20;

/// Runs `work` on a thread with a stack of [`STACK_BYTES`].
fn on_small_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        thread.expect("a thread").join().expect("a panic ends the process")
    })
}

/// Memory is counted for one at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The largest fixture that is an input, too: a small model.
const MAX_FIXTURE: u64 = 100_000;

/// Runs all kept inputs of a target. A panic that is caught on its way is a failure, too: in
/// WebAssembly nothing catches it.
fn replay(target: &str, least: usize, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    replay_files(&folder, least, run);
}

/// The same with the fixtures of a format.
fn replay_fixtures(format: &str, least: usize, run: fn(&[u8])) {
    replay_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(format), least, run);
}

fn replay_files(folder: &Path, least: usize, run: fn(&[u8])) {
    let _one = ONE.lock().expect("no test fails without an end");
    panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        abort();
    }));
    let mut inputs: Vec<_> = fs::read_dir(folder).expect("a corpus").flatten().collect();
    inputs.retain(|input| input.metadata().is_ok_and(|it| it.is_file() && it.len() <= MAX_FIXTURE));
    inputs.sort_by_key(fs::DirEntry::path);
    assert!(inputs.len() >= least, "{} inputs in {}", inputs.len(), folder.display());
    for input in inputs {
        eprintln!("{}", input.path().display());
        run(&fs::read(input.path()).expect("an input"));
    }
}

#[test]
fn checkpoints() {
    replay("safetensors", 7, subjects::readers::safetensors);
    replay("folder", 9, subjects::readers::folder);
    replay("config", 20, subjects::readers::config);
    replay("headers", 14, subjects::readers::headers);
}

#[test]
fn other_formats() {
    replay("gguf", 5, subjects::readers::gguf);
    replay_fixtures("gguf", 5, subjects::readers::gguf);
    replay("onnx", 2, subjects::readers::onnx);
    replay_fixtures("onnx", 2, subjects::readers::onnx);
    replay("setun", 2, subjects::readers::setun);
    replay_fixtures("setun", 2, subjects::readers::setun);
}

#[test]
fn stores() {
    replay("manifest", 8, subjects::manifest::run);
    replay("hub_answers", 16, subjects::hub_answers::run);
}

#[test]
fn tokenizers() {
    replay("tokenizer", 5, subjects::tokenizer::run);
}

#[test]
fn chat_templates() {
    replay("chat_template", 5, subjects::chat_template::run);
    replay_fixtures("chat-templates", 5, subjects::chat_template::run);
}

#[test]
fn sessions() {
    replay("session", 2, subjects::session::run);
}

#[test]
#[ignore = "writes the seeds of sessions anew"]
fn rewrite_fixture_of_sessions() {
    let engine = subjects::session::engine();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/session");
    for (name, tokens) in [("blocks", 70), ("no_blocks", 5), ("nothing", 0)] {
        let mut session = engine.session();
        if tokens > 0 {
            let tokens: Vec<u32> = (0..tokens).map(|at| at * 7 % 50).collect();
            session.push(tokens).expect("tokens of the vocabulary");
            let options = GenerateOptions::new().temperature(0.0).max_tokens(1);
            session.generate(options).expect("a stream").wait().expect("a text");
        }
        let saved = pollster::block_on(session.save()).expect("a session");
        fs::write(folder.join(name), saved).expect("a seed");
    }
}

#[test]
fn random_models() {
    replay("equal_bits", 8, subjects::equal_bits::run);
}

#[test]
fn grammars() {
    replay("json_schema", 5, subjects::grammar::json_schema);
    replay("lark", 5, subjects::grammar::lark);
    replay("gbnf", 5, subjects::grammar::gbnf);
    replay("regex", 5, subjects::grammar::regex);
}

#[test]
fn tool_calls() {
    replay("tool_calls", 7, subjects::tool_calls::run);
}

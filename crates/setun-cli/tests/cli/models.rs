//! `setun models`: processes that are killed, that meet, that find no room.

mod damaged;
#[cfg(unix)]
mod full_disk;
#[cfg(unix)]
mod together;

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    server::{Act, Server},
    support::{Outcome, TINY, command, model},
    wait::wait_for,
};

const MB: u64 = 1_000_000;
const PATH: &str = "/models/m.gguf";

/// Bytes that do not repeat.
pub(crate) fn bytes(count: u64) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::iter::repeat_with(next)
        .flat_map(u64::to_le_bytes)
        .take(usize::try_from(count).expect("small"))
        .collect()
}

/// The command, with a store of its own and nothing of the user's environment.
pub(crate) fn in_store(home: &TempDir, args: &[&str]) -> Command {
    let mut command = command(args);
    for name in [
        "HF_ENDPOINT",
        "HF_TOKEN",
        "HF_HUB_OFFLINE",
        "SETUN_OFFLINE",
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ] {
        command.env_remove(name);
    }
    command.env("SETUN_HOME", home.path()).env("HF_HUB_CACHE", home.path().join("none"));
    command
}

pub(crate) fn outcome(mut command: Command) -> Outcome {
    let output = command.output().expect("the command runs");
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: without_slow_connections(&String::from_utf8(output.stderr).expect("UTF-8")),
    }
}

/// Without the line of a connection that takes more than a second, as on a busy machine.
fn without_slow_connections(stderr: &str) -> String {
    stderr.split_inclusive('\n').filter(|line| !line.starts_with("connecting to ")).collect()
}

fn pull(home: &TempDir, address: &str) -> Command {
    in_store(home, &["models", "pull", "--chunk-size", "1", address])
}

/// The lines of the one journal of chunks in a store.
fn journal(folder: &Path) -> Option<String> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "chunks") {
            return std::fs::read_to_string(path).ok();
        }
        if path.is_dir()
            && let Some(found) = journal(&path)
        {
            return Some(found);
        }
    }
    None
}

/// Numbers of the chunks that a journal has.
fn noted(home: &TempDir) -> Vec<u64> {
    let text = journal(home.path()).unwrap_or_default();
    let number = |line: &str| line.strip_prefix("{\"chunk\":[")?.split(',').next()?.parse().ok();
    text.lines().filter_map(number).collect()
}

fn kill(mut child: Child) {
    child.kill().expect("it is killed"); // SIGKILL: nothing of the process runs any more
    child.wait().expect("it has ended");
}

#[test]
fn a_pull_that_is_killed_goes_on_with_the_missing_chunks() {
    let server = Server::start();
    let content = bytes(12 * MB + 1000);
    server.put(PATH, content.clone(), "\"first\"");
    // It does not end before it is killed.
    let go = Arc::new(AtomicBool::new(false));
    server.rule_at(PATH, 12 * MB, usize::MAX, Act::Held(Arc::clone(&go)));
    server.rule(PATH, usize::MAX, Act::Slow(Duration::from_millis(4)));
    let home = tempfile::tempdir().expect("a folder");
    // Twice, so that a journal that was continued is continued.
    for least in [3, 7] {
        let child = pull(&home, &server.at(PATH)).spawn().expect("it starts");
        wait_for("a chunk", || noted(&home).len() >= least);
        kill(child);
        let listed = outcome(in_store(&home, &["models", "list", "--json"])).text();
        assert_eq!(listed, "[]\n", "nothing that is not whole is listed");
        assert_eq!(outcome(in_store(&home, &["models", "path", &server.at(PATH)])).status, Some(1));
    }
    let there = noted(&home);
    assert!((7..13).contains(&there.len()), "{there:?}");
    server.clear_rules();
    go.store(true, Ordering::Relaxed);
    wait_for("the end of the killed one's connections", || server.connections() == 0);
    server.requests();
    server.sent();
    let path = outcome(pull(&home, &server.at(PATH))).text();
    assert_eq!(std::fs::read(path.trim()).expect("the file"), content);
    let missing: Vec<u64> = (0..13).filter(|chunk| !there.contains(chunk)).collect();
    let starts: Vec<u64> = missing.iter().map(|chunk| chunk * MB).collect();
    assert_eq!(server.starts(PATH), starts);
    let sizes = missing.iter().map(|chunk| if *chunk == 12 { 1000 } else { MB });
    assert_eq!(server.sent(), sizes.sum::<u64>());
}

#[test]
fn two_processes_pull_once() {
    let server = Server::start();
    let content = bytes(6 * MB);
    server.put(PATH, content.clone(), "\"first\"");
    let go = Arc::new(AtomicBool::new(false));
    server.rule(PATH, usize::MAX, Act::Held(Arc::clone(&go)));
    let home = tempfile::tempdir().expect("a folder");
    let children: Vec<_> = (0..2)
        .map(|_| {
            let mut child = pull(&home, &server.at(PATH)).spawn().expect("it starts");
            (errors(&mut child, &go), child)
        })
        .collect();
    let outputs: Vec<_> = children
        .into_iter()
        .map(|(errors, child)| {
            let output = child.wait_with_output().expect("its output");
            (output, errors.join().expect("its errors"))
        })
        .collect();
    assert!(outputs.iter().all(|(output, _)| output.status.success()));
    assert_eq!(outputs[0].0.stdout, outputs[1].0.stdout);
    assert_eq!(server.starts(PATH).len(), 6);
    assert_eq!(server.sent(), content.len() as u64);
    assert_eq!(outputs.iter().filter(|(_, errors)| errors.contains("waiting")).count(), 1);
}

/// What a process reports. Once it says that it waits, what is held goes on.
fn errors(child: &mut Child, go: &Arc<AtomicBool>) -> JoinHandle<String> {
    let (mut stderr, go) = (child.stderr.take().expect("a pipe"), Arc::clone(go));
    thread::spawn(move || {
        let (mut text, mut piece) = (String::new(), [0; 1024]);
        loop {
            let count = stderr.read(&mut piece).expect("it reads");
            if count == 0 {
                return text;
            }
            text += &String::from_utf8_lossy(&piece[..count]);
            if text.contains("waiting") {
                go.store(true, Ordering::Relaxed);
            }
        }
    })
}

#[test]
fn one_that_waits_for_a_killed_one_takes_over() {
    let server = Server::start();
    let content = bytes(6 * MB);
    server.put(PATH, content.clone(), "\"first\"");
    let go = hold_after_first_chunk(&server);
    let home = tempfile::tempdir().expect("a folder");
    let first = pull(&home, &server.at(PATH)).spawn().expect("it starts");
    wait_for("a chunk", || !noted(&home).is_empty());
    let mut second = pull(&home, &server.at(PATH)).spawn().expect("it starts");
    let mut reported = String::new();
    let stderr = second.stderr.take().expect("a pipe");
    BufReader::new(stderr).read_line(&mut reported).expect("a line");
    assert!(reported.contains("waiting"), "{reported}");
    kill(first);
    server.clear_rules();
    go.store(true, Ordering::Relaxed);
    let output = second.wait_with_output().expect("its output");
    let path = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(std::fs::read(path.trim()).expect("the file"), content);
}

/// A pull gets its first chunk, and no other until this is set.
fn hold_after_first_chunk(server: &Server) -> Arc<AtomicBool> {
    let go = Arc::new(AtomicBool::new(false));
    server.rule_at(PATH, 0, usize::MAX, Act::Slow(Duration::ZERO));
    server.rule(PATH, usize::MAX, Act::Held(Arc::clone(&go)));
    go
}

/// A server with a small model that runs.
pub(crate) fn with_model() -> (Server, String) {
    let server = Server::start();
    for entry in std::fs::read_dir(model(TINY)).expect("the model") {
        let entry = entry.expect("a file");
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = std::fs::read(entry.path()).expect("its bytes");
        server.put(&format!("/tiny/{name}"), bytes, "\"t\"");
    }
    let address = server.at("/tiny");
    (server, address)
}

#[test]
fn a_model_is_pulled_used_by_its_names_verified_and_removed() {
    let (_server, address) = with_model();
    let home = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| outcome(in_store(&home, args));
    let path = run(&["models", "pull", &address]).text();
    assert_eq!(run(&["models", "path", &address]).text(), path);
    assert_eq!(run(&["models", "alias", "tiny", &address]).text(), "");
    assert!(run(&["models", "alias"]).text().starts_with("tiny  http://"));
    let whole = run(&["models", "list", "--json"]).text();
    assert!(whole.contains("\"aliases\":[\"tiny\"]") && whole.contains("config.json"), "{whole}");
    let out = home.path().join("logits.safetensors");
    let out = out.to_string_lossy();
    assert_eq!(run(&["logits", "--model", "tiny", "--ids", "1,2,3", "--out", &out]).text(), "");
    assert!(run(&["inspect", "tiny"]).text().contains("tiny"));
    assert!(run(&["models", "verify", "tiny"]).text().contains("good"));
    let weights = Path::new(path.trim()).join("model.safetensors");
    let mut bytes = std::fs::read(&weights).expect("weights");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&weights, bytes).expect("damage");
    let damaged = run(&["models", "verify"]);
    assert_eq!(damaged.status, Some(1));
    assert!(damaged.stdout.contains("1 of 1 chunks differ"), "{}", damaged.stdout);
    assert!(damaged.failure().contains("models pull --verify NAME"));
    let checked = run(&["run", "--model", "tiny", "--verify", "Once"]);
    assert!(checked.failure().contains("model.safetensors of tiny (1 of 1 chunks differ"));
    let whole = home.path().join("whole.setun").to_string_lossy().into_owned();
    run(&["convert", &model(TINY), &whole, "--to", "setun"]).text();
    let checked = run(&["run", "--model", &whole, "--draft", "tiny", "--verify", "Once"]);
    assert!(checked.failure().contains("model.safetensors of tiny (1 of 1 chunks differ"));
    // By its size it is the same.
    assert_eq!(run(&["models", "pull", "tiny"]).text(), path);
    assert!(!run(&["models", "verify", "tiny"]).failure().is_empty());
    let repaired = run(&["models", "pull", "--verify", "tiny"]);
    assert_eq!(repaired.text_with("has wrong bytes"), path);
    assert!(run(&["models", "verify", "tiny"]).text().contains("good"));
    let removed = run(&["models", "rm", "--json", "tiny"]);
    let removed = removed.text_with("the alias `tiny` stands for nothing now");
    assert!(removed.contains("\"bytes\":"), "{removed}");
    assert_eq!(run(&["models", "list"]).text_with("the alias `tiny` stands for `http://"), "");
    assert!(run(&["models", "path", "tiny"]).failure().contains("[not-found]"));
}

#[test]
fn the_environment_is_respected() {
    let (server, address) = with_model();
    let home = tempfile::tempdir().expect("a folder");
    let list = "/api/models/o/n/revision/main?blobs=true";
    let run = |name: &str, variables: &[(&str, &str)]| {
        let mut command = in_store(&home, &["models", "pull", name]);
        command.envs(variables.iter().copied());
        outcome(command)
    };
    let endpoint = server.at("");
    let closed = run("o/n", &[("HF_ENDPOINT", &endpoint), ("HF_TOKEN", "secret")]);
    assert!(closed.failure().contains("[not-found]"));
    let asked = server.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].path.as_str(), asked[0].token.as_deref()), (list, Some("Bearer secret")));
    for variable in ["HF_HUB_OFFLINE", "SETUN_OFFLINE"] {
        let offline = run(&address, &[(variable, "1")]);
        assert!(offline.failure().contains(variable));
    }
    assert!(server.requests().is_empty());
    assert_eq!(
        run("a b", &[]).failure(),
        "setun: [bad-option] `a b` is not a model name: expected owner/name, \
        owner/name@revision, owner/name:file, each also with `hf:` before it, an alias, or an address \
        that begins with https://\n"
    );
    assert_eq!(outcome(in_store(&home, &["models"])).status, Some(2));
}

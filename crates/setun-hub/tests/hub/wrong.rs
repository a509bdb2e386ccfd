//! Wrong bytes: found by the hashes of a hub or a manifest.

use setun_hub::{Error, PullEvent};

use crate::{
    server::{Act, Server},
    support::{CHUNK, PIECE, TestStore, bytes, hub_path, put_hub},
};

fn damages(env: &TestStore) -> Vec<Vec<u64>> {
    let of = |event| match event {
        PullEvent::Corrupt { chunks, .. } => Some(chunks),
        _ => None,
    };
    env.events().into_iter().filter_map(of).collect()
}

#[test]
fn a_file_that_is_wrong_as_a_whole_comes_once_more() {
    let server = Server::start();
    let content = bytes(4 * PIECE, 1);
    put_hub(&server, "o/n", &[("m.gguf", &content)]);
    let path = hub_path("o/n", "m.gguf");
    server.rule_at(&path, CHUNK, 1, Act::Wrong);
    let env = TestStore::new(&server);
    env.pull("o/n").unwrap();
    assert_eq!(env.read("o/n", "m.gguf"), content);
    assert_eq!(damages(&env), [Vec::<u64>::new()]);
    assert_eq!(server.starts(&path).len(), 8);
}

#[test]
fn a_file_that_stays_wrong_is_an_error_and_not_kept() {
    let server = Server::start();
    let content = bytes(4 * PIECE, 1);
    put_hub(&server, "o/n", &[("m.gguf", &content)]);
    let path = hub_path("o/n", "m.gguf");
    server.rule_at(&path, CHUNK, usize::MAX, Act::Wrong);
    server.rule_at(&path, 3 * CHUNK, 1, Act::Wrong);
    let env = TestStore::new(&server);
    let error = env.pull("o/n").unwrap_err();
    // What differed between the two is known.
    assert!(matches!(&error, Error::ChecksumMismatch { chunks, .. } if *chunks == [3]), "{error}");
    env.assert_nothing_listed("o/n");
    assert_eq!(env.files(), ["manifest.json"]);
    assert_eq!(server.starts(&path).len(), 8);
}

/// A server whose folder was made by a store, so that its manifest has hashes of chunks.
fn with_manifest(content: &[u8]) -> Server {
    let first = Server::start();
    put_hub(&first, "o/n", &[("config.json", b"{}"), ("model.safetensors", content)]);
    let env = TestStore::new(&first);
    let model = env.pull("o/n").unwrap();
    let server = Server::start();
    for name in ["manifest.json", "config.json", "model.safetensors"] {
        let bytes = std::fs::read(model.folder.join(name)).unwrap();
        server.put(&format!("/copy/{name}"), bytes, "\"copy\"");
    }
    server
}

#[test]
fn a_wrong_chunk_alone_comes_once_more() {
    let content = bytes(4 * PIECE + 5, 1);
    let server = with_manifest(&content);
    let path = "/copy/model.safetensors";
    server.rule_at(path, 2 * CHUNK, 1, Act::Wrong);
    let mut env = TestStore::new(&server);
    env.options.chunk_bytes = 3 * CHUNK; // the manifest's are taken
    let model = env.pull(&server.at("/copy")).unwrap();
    assert_eq!(model.path(None).unwrap(), model.folder);
    assert_eq!(env.read(&server.at("/copy"), "model.safetensors"), content);
    assert_eq!(damages(&env), [vec![2]]);
    assert_eq!(server.starts(path), [0, CHUNK, 2 * CHUNK, 2 * CHUNK, 3 * CHUNK, 4 * CHUNK]);
}

#[test]
fn a_chunk_that_stays_wrong_is_an_error_and_the_others_are_kept() {
    let content = bytes(4 * PIECE, 1);
    let server = with_manifest(&content);
    let path = "/copy/model.safetensors";
    server.rule_at(path, 2 * CHUNK, usize::MAX, Act::Wrong);
    let mut env = TestStore::new(&server);
    env.options.connections = 1;
    let error = env.pull(&server.at("/copy")).unwrap_err();
    assert!(matches!(&error, Error::ChecksumMismatch { chunks, .. } if *chunks == [2]), "{error}");
    env.assert_nothing_listed(&server.at("/copy"));
    server.clear_rules();
    server.requests();
    env.pull(&server.at("/copy")).unwrap();
    assert_eq!(server.starts(path), [2 * CHUNK, 3 * CHUNK]);
    assert_eq!(env.read(&server.at("/copy"), "model.safetensors"), content);
}

#[test]
fn wrong_bytes_from_a_server_without_parts_are_found_too() {
    let content = bytes(4 * PIECE, 1);
    let server = with_manifest(&content);
    let path = "/copy/model.safetensors";
    server.rule(path, 1, Act::IgnoreRange);
    server.rule(path, 1, Act::Wrong);
    let mut env = TestStore::new(&server);
    env.options.connections = 1;
    env.pull(&server.at("/copy")).unwrap();
    assert_eq!(env.read(&server.at("/copy"), "model.safetensors"), content);
}

#[test]
fn what_the_disk_has_lost_comes_once_more() {
    let server = Server::start();
    let content = bytes(6 * PIECE, 1);
    server.put("/m.gguf", content.clone(), "\"e\"");
    server.rule_at("/m.gguf", 5 * CHUNK, usize::MAX, Act::Break(0));
    let mut env = TestStore::new(&server);
    env.options.connections = 1;
    env.options.attempts = 2;
    let name = server.at("/m.gguf");
    // The last two are looked at when a pull resumes, the others when all is there.
    for lost in [4, 0] {
        env.pull(&name).unwrap_err();
        let part = part(&env);
        let mut bytes = std::fs::read(&part).unwrap();
        bytes[lost * PIECE + 7] ^= 1;
        std::fs::write(&part, bytes).unwrap();
    }
    server.clear_rules();
    server.requests();
    env.events();
    env.pull(&name).unwrap();
    assert_eq!(server.starts("/m.gguf"), [0, 5 * CHUNK]);
    assert_eq!(damages(&env), [vec![0]]);
    assert_eq!(env.read(&name, "m.gguf"), content);
}

fn part(env: &TestStore) -> std::path::PathBuf {
    let mut folder = env.folder.path().join("models");
    for _ in 0..4 {
        folder = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    }
    folder.join("m.gguf.part")
}

#[test]
fn a_hub_that_lies_about_a_size_is_found() {
    let server = Server::start();
    let content = bytes(2 * PIECE, 1);
    put_hub(&server, "o/n", &[("m.gguf", &content)]);
    for size in [PIECE, 3 * PIECE] {
        server.put(&hub_path("o/n", "m.gguf"), bytes(size, 1), "\"other\"");
        let env = TestStore::new(&server);
        let error = env.pull("o/n").unwrap_err();
        let expected = 2 * CHUNK;
        assert!(
            matches!(error, Error::SizeMismatch { expected: found, .. } if found == expected),
            "{error}"
        );
        env.assert_nothing_listed("o/n");
        assert_eq!(env.files(), ["manifest.json"]);
    }
}

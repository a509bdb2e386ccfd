//! Files that become others while they come, or between two pulls.

use setun_hub::{Error, PullEvent};

use crate::{
    server::{Act, Server},
    support::{CHUNK, PIECE, TestStore, bytes, hub_path, put_hub},
};

const PATH: &str = "/models/m.gguf";

fn changes(env: &TestStore) -> usize {
    env.events()
        .into_iter()
        .filter(|event| matches!(event, PullEvent::SourceChanged { .. }))
        .count()
}

#[test]
fn a_file_that_changes_while_it_comes_begins_anew() {
    for length in [5 * PIECE, 3 * PIECE] {
        let server = Server::start();
        let (old, new) = (bytes(5 * PIECE, 1), bytes(length, 2));
        server.put(PATH, old, "\"first\"");
        server.rule_at(PATH, 2 * CHUNK, 1, Act::Become(new.clone(), "\"second\""));
        let env = TestStore::new(&server);
        env.pull(&server.at(PATH)).unwrap();
        assert_eq!(env.read(&server.at(PATH), "m.gguf"), new);
        assert_eq!(changes(&env), 2, "the file, and what is left of the first");
        assert_eq!(env.files(), ["m.gguf", "manifest.json"]);
        assert!(
            server
                .requests()
                .iter()
                .any(|request| request.if_range.as_deref() == Some("\"first\""))
        );
    }
}

#[test]
fn a_file_that_changed_between_two_pulls_begins_anew() {
    let server = Server::start();
    server.put(PATH, bytes(5 * PIECE, 1), "\"first\"");
    server.rule_at(PATH, 3 * CHUNK, usize::MAX, Act::Break(0));
    let mut env = TestStore::new(&server);
    env.options.attempts = 2;
    env.options.connections = 1;
    env.pull(&server.at(PATH)).unwrap_err();
    server.clear_rules();
    let new = bytes(5 * PIECE, 2);
    server.put(PATH, new.clone(), "\"second\"");
    env.events();
    server.sent();
    env.pull(&server.at(PATH)).unwrap();
    assert_eq!(server.sent(), new.len() as u64);
    assert_eq!(env.read(&server.at(PATH), "m.gguf"), new);
    assert_eq!(changes(&env), 1);
}

#[test]
fn a_whole_model_stays_until_the_changed_one_is_whole() {
    let server = Server::start();
    let old = bytes(3 * PIECE, 1);
    server.put(PATH, old.clone(), "\"first\"");
    let mut env = TestStore::new(&server);
    env.options.attempts = 2;
    env.options.connections = 1;
    env.pull(&server.at(PATH)).unwrap();
    let new = bytes(3 * PIECE, 2);
    server.put(PATH, new.clone(), "\"second\"");
    server.rule_at(PATH, CHUNK, usize::MAX, Act::Break(0));
    env.pull(&server.at(PATH)).unwrap_err();
    assert_eq!(env.read(&server.at(PATH), "m.gguf"), old);
    server.clear_rules();
    env.pull(&server.at(PATH)).unwrap();
    assert_eq!(env.store.list().unwrap().len(), 2);
    let listed = env.store.list().unwrap();
    let folders: Vec<_> =
        listed.iter().map(|model| std::fs::read(model.folder.join("m.gguf")).unwrap()).collect();
    assert!(folders.contains(&old) && folders.contains(&new));
}

#[test]
fn a_file_that_never_stays_the_same_is_given_up() {
    let server = Server::start();
    server.put(PATH, bytes(2 * PIECE, 0), "\"first\"");
    for (seed, etag) in (1..).zip(["\"1\"", "\"2\"", "\"3\"", "\"4\"", "\"5\""]) {
        server.rule_at(PATH, CHUNK, 1, Act::Become(bytes(2 * PIECE, seed), etag));
    }
    let mut env = TestStore::new(&server);
    env.options.connections = 1;
    let error = env.pull(&server.at(PATH)).unwrap_err();
    assert!(matches!(error, Error::SourceChanged { .. }), "{error}");
    env.assert_nothing_listed(&server.at(PATH));
}

#[test]
fn a_hubs_file_that_another_server_knows_otherwise_begins_anew() {
    let server = Server::start();
    let content = bytes(4 * PIECE, 1);
    put_hub(&server, "o/n", &[("m.gguf", &content)]);
    let path = hub_path("o/n", "m.gguf");
    server.rule_at(&path, 2 * CHUNK, 1, Act::Become(content.clone(), "\"moved\""));
    let mut env = TestStore::new(&server);
    env.options.connections = 1;
    env.pull("o/n").unwrap();
    assert_eq!(env.read("o/n", "m.gguf"), content);
    assert_eq!(changes(&env), 1);
}

#[test]
fn a_part_of_another_file_is_no_part_of_this_one() {
    let server = Server::start();
    let (old, new) = (bytes(4 * PIECE, 1), bytes(4 * PIECE, 2));
    server.put(PATH, old, "\"first\"");
    server.rule_at(PATH, 3 * CHUNK, 1, Act::BecomeUnasked(new.clone(), "\"second\""));
    let mut env = TestStore::new(&server);
    env.options.connections = 1;
    env.pull(&server.at(PATH)).unwrap();
    assert_eq!(env.read(&server.at(PATH), "m.gguf"), new);
}

#[test]
fn a_hubs_file_without_a_hash_that_changed_between_two_pulls_begins_anew() {
    let server = Server::start();
    let (old, new) = (bytes(4 * PIECE, 1), bytes(4 * PIECE, 2));
    put_hub(&server, "o/n", &[("tokenizer.json", &old), ("m.gguf", b"weights")]);
    let path = hub_path("o/n", "tokenizer.json");
    server.rule_at(&path, 3 * CHUNK, usize::MAX, Act::Break(0));
    let mut env = TestStore::new(&server);
    env.options.attempts = 2;
    env.options.connections = 1;
    env.pull("o/n").unwrap_err();
    server.clear_rules();
    server.put(&path, new.clone(), "\"second\"");
    env.events();
    env.pull("o/n").unwrap();
    assert_eq!(env.read("o/n", "tokenizer.json"), new);
    assert_eq!(changes(&env), 1);
}

//! The store: what is listed, removed, verified, and found elsewhere.

use std::{
    fs,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use setun_hub::{Error, ModelStore, PullEvent, discover};

use crate::{
    server::{Act, Server},
    support::{CHUNK, COMMIT, PIECE, TestStore, bytes, hub_path, put_hub},
    wait::wait_for,
};

#[test]
fn aliases_stand_for_names() {
    let server = Server::start();
    put_hub(&server, "o/n", &[("m.gguf", &bytes(100, 1))]);
    let env = TestStore::new(&server);
    env.store.alias("small", Some("o/n")).unwrap();
    env.store.alias("smaller", Some("small")).unwrap();
    let model = env.pull("smaller").unwrap();
    assert_eq!(env.store.resolve("small").unwrap(), model.path(None).unwrap());
    assert_eq!(env.store.aliases().unwrap().len(), 2);
    env.store.alias("small", None).unwrap();
    assert!(matches!(env.pull("smaller"), Err(Error::NotFound { .. })));
    assert!(matches!(env.store.alias("a/b", Some("o/n")), Err(Error::InvalidName { .. })));
    env.store.alias("round", Some("round")).unwrap();
    assert!(matches!(env.store.resolve("round"), Err(Error::InvalidName { .. })));
}

#[test]
fn what_is_removed_is_gone() {
    let server = Server::start();
    put_hub(&server, "o/n", &[("m.gguf", &bytes(PIECE, 1))]);
    put_hub(&server, "o/other", &[("m.gguf", &bytes(PIECE, 2))]);
    let mut env = TestStore::new(&server);
    env.options.attempts = 1;
    env.pull("o/n").unwrap();
    let path = hub_path("o/other", "m.gguf");
    server.rule(&path, 1, Act::Break(0));
    env.pull("o/other").unwrap_err();
    let uses = env.store.disk_usage().unwrap();
    let complete: Vec<_> = uses.iter().map(|used| used.complete).collect();
    assert_eq!(complete, [true, false]);
    assert!(uses[0].bytes >= CHUNK, "{uses:?}");
    assert!(env.remove("o/n").unwrap() >= CHUNK);
    env.remove("o/other").unwrap();
    assert_eq!(env.files(), [""; 0]);
    let again = env.remove("o/n");
    assert!(matches!(again, Err(Error::NotFound { .. })));
}

#[test]
fn damage_is_found_by_chunk() {
    let server = Server::start();
    put_hub(&server, "o/n", &[("m.gguf", &bytes(3 * PIECE, 1))]);
    let env = TestStore::new(&server);
    let model = env.pull("o/n").unwrap();
    assert!(model.verify(&env.options, |_| ()).unwrap().iter().all(|check| check.good));
    let path = model.folder.join("m.gguf");
    let mut content = fs::read(&path).unwrap();
    content[PIECE + 9] ^= 4;
    fs::write(&path, &content).unwrap();
    let checks = model.verify(&env.options, |_| ()).unwrap();
    assert_eq!((checks[0].good, checks[0].chunks.as_slice()), (false, [1].as_slice()));
    fs::write(&path, &content[1..]).unwrap();
    assert!(!model.verify(&env.options, |_| ()).unwrap()[0].good);
    // One that is shorter is not whole, so it is not there.
    env.assert_nothing_listed("o/n");
}

#[test]
fn two_at_once_pull_once() {
    let server = Server::start();
    let content = bytes(6 * PIECE, 1);
    put_hub(&server, "o/n", &[("m.gguf", &content)]);
    let go = Arc::new(AtomicBool::new(false));
    server.rule(&hub_path("o/n", "m.gguf"), usize::MAX, Act::Held(Arc::clone(&go)));
    let env = Arc::new(TestStore::new(&server));
    let start = Arc::new(Barrier::new(3));
    let pulls: Vec<_> = (0..3)
        .map(|_| {
            let (env, start) = (Arc::clone(&env), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                env.pull("o/n").map(|model| model.folder)
            })
        })
        .collect();
    let mut events = vec![];
    let waits = |event: &&PullEvent| matches!(event, PullEvent::WaitingForLock { .. });
    wait_for("a wait of two for the third", || {
        events.extend(env.events());
        events.iter().filter(waits).count() == 2
    });
    go.store(true, Ordering::Relaxed);
    let folders: Vec<_> = pulls.into_iter().map(|pull| pull.join().unwrap().unwrap()).collect();
    assert!(folders.iter().all(|folder| *folder == folders[0]));
    assert_eq!(server.starts(&hub_path("o/n", "m.gguf")).len(), 6);
    events.extend(env.events());
    let count = |is: fn(&PullEvent) -> bool| events.iter().filter(|event| is(event)).count();
    assert_eq!(count(|event| matches!(event, PullEvent::WaitingForLock { .. })), 2);
    assert_eq!(count(|event| matches!(event, PullEvent::AlreadyStored { .. })), 2);
}

#[test]
fn later_versions_are_refused_by_name() {
    let server = Server::start();
    put_hub(&server, "o/n", &[("m.gguf", &bytes(100, 1))]);
    let env = TestStore::new(&server);
    let model = env.pull("o/n").unwrap();
    let path = model.folder.join("manifest.json");
    let text = fs::read_to_string(&path).unwrap().replace("\"format\": 1", "\"format\": 2");
    fs::write(&path, text).unwrap();
    let error = env.store.resolve("o/n").unwrap_err();
    assert!(error.to_string().contains("format 2"), "{error}");
}

#[test]
fn models_are_found_in_a_folder_and_in_the_hubs_cache() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, bytes: &[u8]| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    write("a/config.json", b"{}");
    write("a/model.safetensors", b"1234");
    write("b/x.gguf", b"12");
    write("b/deep/y-00001-of-00002.gguf", b"1");
    write("b/deep/y-00002-of-00002.gguf", b"1");
    write("b/config.json", b"{}");
    write("c/pytorch_model.bin", b"1");
    write(".hidden/z.gguf", b"1");
    let names: Vec<_> = discover(folder.path()).into_iter().map(|model| model.name).collect();
    let part = format!("b{0}deep{0}y-00001-of-00002.gguf", std::path::MAIN_SEPARATOR);
    assert_eq!(names, ["a".to_owned(), format!("b{}x.gguf", std::path::MAIN_SEPARATOR), part]);

    let cache = folder.path().join("hub");
    let snapshot = format!("hub/models--o--n/snapshots/{COMMIT}");
    write(&format!("{snapshot}/config.json"), b"{}");
    write(&format!("{snapshot}/model.safetensors"), b"1234");
    write("hub/models--o--n/refs/main", COMMIT.as_bytes());
    write("hub/models--o--empty/refs/main", COMMIT.as_bytes());
    let env = TestStore::with(|settings| settings.hub_cache = Some(cache.clone()));
    let found = env.store.discover_hub_cache();
    assert_eq!((found.len(), found[0].name.as_str()), (1, "o/n"));
    assert_eq!(env.store.resolve("o/n").unwrap(), folder.path().join(&snapshot));
    assert_eq!(env.store.resolve(&format!("o/n@{COMMIT}")).unwrap(), folder.path().join(&snapshot));
    assert!(env.store.resolve("o/empty").is_err());
    assert!(env.store.list().unwrap().is_empty());
}

#[test]
fn nothing_is_seen_before_all_of_it_is_there() {
    let server = Server::start();
    let content = bytes(3 * PIECE, 1);
    put_hub(&server, "o/n", &[("config.json", b"{}"), ("model.safetensors", &content)]);
    let env = TestStore::new(&server);
    let looking = ModelStore::open(env.store.settings().clone());
    let pulled = env.store.pull("o/n", &env.options, &|_| {
        assert!(looking.list().unwrap().is_empty());
        assert!(looking.resolve("o/n").is_err());
    });
    pulled.unwrap();
    assert_eq!(looking.list().unwrap().len(), 1);
}

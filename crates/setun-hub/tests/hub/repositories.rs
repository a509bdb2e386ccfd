//! A hub: its lists, its token, its redirects, its revisions.

use setun_hub::{Error, PullEvent};

use crate::{
    server::{Act, Server},
    support::{CHUNK, COMMIT, PIECE, TestStore, bytes, hub_path, list_path, put_hub},
};

const CONFIG: &[u8] = b"{\"model_type\":\"bitnet\"}";

#[test]
fn a_repository_is_pulled_and_found_by_its_names() {
    let server = Server::start();
    let content = bytes(3 * PIECE, 1);
    let files: [(&str, &[u8]); 4] = [
        ("config.json", CONFIG),
        ("pytorch_model.bin", b"never"),
        ("model.safetensors", &content),
        ("README.md", b"never"),
    ];
    put_hub(&server, "o/n", &files);
    let env = TestStore::new(&server);
    let model = env.pull("o/n").unwrap();
    assert_eq!(env.files(), ["config.json", "manifest.json", "model.safetensors", "refs.json"]);
    assert_eq!(model.manifest.licence.as_deref(), Some("mit"));
    assert_eq!(model.manifest.revision, COMMIT);
    assert_eq!(model.manifest.file("model.safetensors").unwrap().chunks.len(), 3);
    let whole = format!("{}/o/n", server.host());
    for name in ["o/n", "o/n@main", &format!("o/n@{COMMIT}"), &whole] {
        assert_eq!(env.store.resolve(name).unwrap(), model.folder, "{name}");
    }
    assert!(env.store.resolve("o/n@other").is_err());
    // A checkpoint's own file is opened with those beside it.
    assert_eq!(env.store.resolve("o/n:model.safetensors").unwrap(), model.folder);
    assert!(env.store.resolve("o/n:README.md").is_err());
    // A commit never is another: no server is asked.
    server.requests();
    env.pull(&format!("o/n@{COMMIT}")).unwrap();
    assert!(server.requests().is_empty());
    // A branch may be another: the list alone is asked for.
    env.pull("o/n").unwrap();
    let asked: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(asked, [list_path("o/n", "main")]);
}

#[test]
fn several_files_have_to_be_named_and_come_one_by_one() {
    let server = Server::start();
    let (first, second) = (bytes(PIECE, 1), bytes(PIECE, 2));
    put_hub(&server, "o/n", &[("a-q8.gguf", &first), ("b-q8.gguf", &second)]);
    let env = TestStore::new(&server);
    let error = env.pull("o/n").unwrap_err();
    assert!(matches!(&error, Error::AmbiguousFile { files, .. } if files.len() == 2), "{error}");
    env.pull("o/n:b-q8.gguf").unwrap();
    assert_eq!(env.files(), ["b-q8.gguf", "manifest.json", "refs.json"]);
    // One that is here alone need not be named.
    assert!(env.store.resolve("o/n").unwrap().ends_with("b-q8.gguf"));
    server.sent();
    env.pull("o/n:a-q8.gguf").unwrap();
    assert!(server.sent() < 2 * CHUNK, "the second alone");
    assert!(env.store.resolve("o/n:a-q8.gguf").unwrap().ends_with("a-q8.gguf"));
    assert!(env.store.resolve("o/n").is_err());
}

#[test]
fn the_token_goes_to_the_hub_and_nowhere_else() {
    let (hub, store) = (Server::start(), Server::start());
    let content = bytes(3 * PIECE, 1);
    put_hub(&hub, "o/n", &[("config.json", CONFIG), ("model.safetensors", &content)]);
    let path = hub_path("o/n", "model.safetensors");
    store.put("/blob", content.clone(), "\"blob\"");
    hub.link(&path, "\"linked\"");
    hub.rule_of_all(&path, usize::MAX, Act::Redirect(store.at("/blob")));
    let env = TestStore::with(|settings| {
        settings.endpoint = hub.at("");
        settings.token = Some("secret".into());
    });
    let model = env.pull("o/n").unwrap();
    assert_eq!(env.read("o/n", "model.safetensors"), content);
    let asked = hub.requests();
    assert!(
        asked.iter().all(|request| request.token.as_deref() == Some("Bearer secret")),
        "{asked:?}"
    );
    let elsewhere = store.requests();
    assert!(!elsewhere.is_empty() && elsewhere.iter().all(|request| request.token.is_none()));
    // Behind the redirect all chunks are asked for at once.
    assert_eq!(asked.iter().filter(|request| request.path == path).count(), 1);
    assert_eq!(
        model.manifest.file("model.safetensors").unwrap().etag.as_deref(),
        Some("\"linked\"")
    );
    // Nor does an address of a user's hear it.
    env.pull(&store.at("/blob")).unwrap_err();
    assert!(store.requests().iter().all(|request| request.token.is_none()));
}

#[test]
fn an_address_behind_a_redirect_that_expires_is_asked_for_again() {
    let (hub, store) = (Server::start(), Server::start());
    let content = bytes(4 * PIECE, 1);
    put_hub(&hub, "o/n", &[("m.gguf", &content)]);
    let path = hub_path("o/n", "m.gguf");
    store.put("/one", content.clone(), "\"one\"").put("/two", content.clone(), "\"two\"");
    hub.link(&path, "\"linked\"");
    hub.rule_of_all(&path, 1, Act::Redirect(store.at("/one")));
    hub.rule_of_all(&path, usize::MAX, Act::Redirect(store.at("/two")));
    store.rule_at("/one", 2 * CHUNK, usize::MAX, Act::Status(403, vec![]));
    store.rule_at("/one", 3 * CHUNK, usize::MAX, Act::Status(403, vec![]));
    let mut env = TestStore::new(&hub);
    env.options.connections = 1;
    env.pull("o/n").unwrap();
    assert_eq!(env.read("o/n", "m.gguf"), content);
    assert!(!env.events().iter().any(|event| matches!(event, PullEvent::SourceChanged { .. })));
}

#[test]
fn a_repository_that_is_not_there_or_is_closed_is_told_of() {
    let server = Server::start();
    let env = TestStore::new(&server);
    let error = env.pull("o/n").unwrap_err();
    assert!(matches!(error, Error::NoModel { .. }), "{error}");
    server.rule(&list_path("o/n", "main"), 1, Act::Status(401, vec![]));
    let error = env.pull("o/n").unwrap_err();
    assert!(matches!(error, Error::HttpStatus { status: 401, .. }), "{error}");
    assert!(error.to_string().contains("HF_TOKEN"), "{error}");
    server.put(&list_path("o/n", "main"), "{\"sha\":\"../../x\",\"siblings\":[]}", "\"l\"");
    assert!(matches!(env.pull("o/n"), Err(Error::Network { .. })));
}

#[test]
fn offline_nobody_is_asked() {
    let server = Server::start();
    put_hub(&server, "o/n", &[("m.gguf", &bytes(100, 1))]);
    let env = TestStore::new(&server);
    let pulled = env.pull("o/n").unwrap();
    server.requests();
    let mut settings = env.store.settings().clone();
    settings.offline = Some("a test");
    let offline = setun_hub::ModelStore::open(settings);
    let pull = |name| offline.pull(name, &env.options, &|_| ());
    assert_eq!(pull("o/n").unwrap().folder, pulled.folder);
    let error = pull("o/other").unwrap_err();
    assert!(matches!(error, Error::Offline { .. }), "{error}");
    assert!(server.requests().is_empty());
}

#[test]
fn names_that_lead_out_of_the_folder_are_passed_over() {
    let server = Server::start();
    let files: [(&str, &[u8]); 3] =
        [("../evil.gguf", b"x"), ("/evil.gguf", b"x"), ("good.gguf", b"good")];
    put_hub(&server, "o/n", &files);
    let env = TestStore::new(&server);
    env.pull("o/n").unwrap();
    assert_eq!(env.files(), ["good.gguf", "manifest.json", "refs.json"]);
    assert!(matches!(env.pull("o/n:../evil.gguf"), Err(Error::InvalidName { .. })));
}

//! A hub: its lists, its token, its redirects, its revisions.

use setun::registry::{PullEvent, RegistryError};

use crate::{
    server::{Act, Server},
    support::{CHUNK, COMMIT, PIECE, Place, bytes, hub_path, list_path, put_hub},
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
    let place = Place::new(&server);
    let model = place.pull("o/n").unwrap();
    assert_eq!(place.files(), ["config.json", "manifest.json", "model.safetensors", "refs.json"]);
    assert_eq!(model.manifest.licence.as_deref(), Some("mit"));
    assert_eq!(model.manifest.revision, COMMIT);
    assert_eq!(model.manifest.file("model.safetensors").unwrap().chunks.len(), 3);
    let whole = format!("{}/o/n", server.host());
    for name in ["o/n", "o/n@main", &format!("o/n@{COMMIT}"), &whole] {
        assert_eq!(place.registry.resolve(name).unwrap(), model.folder, "{name}");
    }
    assert!(place.registry.resolve("o/n@other").is_err());
    // A checkpoint's own file is opened with those beside it.
    assert_eq!(place.registry.resolve("o/n:model.safetensors").unwrap(), model.folder);
    assert!(place.registry.resolve("o/n:README.md").is_err());
    // A commit never is another: nobody is asked.
    server.requests();
    place.pull(&format!("o/n@{COMMIT}")).unwrap();
    assert!(server.requests().is_empty());
    // A branch may be another: the list alone is asked for.
    place.pull("o/n").unwrap();
    let asked: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(asked, [list_path("o/n", "main")]);
}

#[test]
fn several_files_have_to_be_named_and_come_one_by_one() {
    let server = Server::start();
    let (first, second) = (bytes(PIECE, 1), bytes(PIECE, 2));
    put_hub(&server, "o/n", &[("a-q8.gguf", &first), ("b-q8.gguf", &second)]);
    let place = Place::new(&server);
    let error = place.pull("o/n").unwrap_err();
    assert!(
        matches!(&error, RegistryError::Ambiguous { files, .. } if files.len() == 2),
        "{error}"
    );
    place.pull("o/n:b-q8.gguf").unwrap();
    assert_eq!(place.files(), ["b-q8.gguf", "manifest.json", "refs.json"]);
    // One that is here alone need not be named.
    assert!(place.registry.resolve("o/n").unwrap().ends_with("b-q8.gguf"));
    server.sent();
    place.pull("o/n:a-q8.gguf").unwrap();
    assert!(server.sent() < 2 * CHUNK, "the second alone");
    assert!(place.registry.resolve("o/n:a-q8.gguf").unwrap().ends_with("a-q8.gguf"));
    assert!(place.registry.resolve("o/n").is_err());
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
    let place = Place::with(|settings| settings.endpoint(hub.at("")).token("secret"));
    let model = place.pull("o/n").unwrap();
    assert_eq!(place.read("o/n", "model.safetensors"), content);
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
    place.pull(&store.at("/blob")).unwrap_err();
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
    let mut place = Place::new(&hub);
    place.options = place.options.connections(1);
    place.pull("o/n").unwrap();
    assert_eq!(place.read("o/n", "m.gguf"), content);
    assert!(!place.events().iter().any(|event| matches!(event, PullEvent::Changed { .. })));
}

#[test]
fn a_repository_that_is_not_there_or_is_closed_is_told_of() {
    let server = Server::start();
    let place = Place::new(&server);
    let error = place.pull("o/n").unwrap_err();
    assert!(matches!(error, RegistryError::NoModel { .. }), "{error}");
    server.rule(&list_path("o/n", "main"), 1, Act::Status(401, vec![]));
    let error = place.pull("o/n").unwrap_err();
    assert!(matches!(error, RegistryError::Status { status: 401, .. }), "{error}");
    assert!(error.to_string().contains("HF_TOKEN"), "{error}");
    server.put(&list_path("o/n", "main"), "{\"sha\":\"../../x\",\"siblings\":[]}", "\"l\"");
    assert!(matches!(place.pull("o/n"), Err(RegistryError::Network { .. })));
}

#[test]
fn offline_nobody_is_asked() {
    let server = Server::start();
    put_hub(&server, "o/n", &[("m.gguf", &bytes(100, 1))]);
    let place = Place::new(&server);
    let pulled = place.pull("o/n").unwrap();
    server.requests();
    let settings = place.registry.settings().clone().offline(true);
    let offline = setun::registry::Registry::open(settings);
    let pull = |name| offline.pull(name, &place.options, &|_| ());
    assert_eq!(pull("o/n").unwrap().folder, pulled.folder);
    let error = pull("o/other").unwrap_err();
    assert!(matches!(error, RegistryError::Offline { .. }), "{error}");
    assert!(server.requests().is_empty());
}

#[test]
fn names_that_lead_out_of_the_folder_are_passed_over() {
    let server = Server::start();
    let files: [(&str, &[u8]); 3] =
        [("../evil.gguf", b"x"), ("/evil.gguf", b"x"), ("good.gguf", b"good")];
    put_hub(&server, "o/n", &files);
    let place = Place::new(&server);
    place.pull("o/n").unwrap();
    assert_eq!(place.files(), ["good.gguf", "manifest.json", "refs.json"]);
    assert!(matches!(place.pull("o/n:../evil.gguf"), Err(RegistryError::BadName { .. })));
}

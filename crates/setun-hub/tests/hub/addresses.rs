//! Folders at any address, in Hugging Face's layout.

use setun_hub::Error;

use crate::{
    server::{Act, Server},
    support::{PIECE, TestStore, bytes},
};

#[test]
fn the_files_that_a_checkpoint_wants_are_looked_for() {
    let server = Server::start();
    let content = bytes(2 * PIECE, 1);
    server.put("/m/config.json", "{}", "\"c\"").put("/m/tokenizer.json", "{\"t\":1}", "\"t\"");
    server.put("/m/model.safetensors", content.clone(), "\"w\"");
    let env = TestStore::new(&server);
    let model = env.pull(&server.at("/m/")).unwrap();
    assert_eq!(
        env.files(),
        ["config.json", "manifest.json", "model.safetensors", "tokenizer.json"]
    );
    assert_eq!(model.path(None).unwrap(), model.folder);
    assert_eq!(env.read(&server.at("/m"), "model.safetensors"), content);
}

#[test]
fn shards_come_as_the_index_names_them() {
    let server = Server::start();
    let index = "{\"weight_map\":{\"a\":\"model-00001-of-00002.safetensors\",\
                 \"b\":\"model-00002-of-00002.safetensors\",\"c\":\"model-00001-of-00002.safetensors\"}}";
    server.put("/m/config.json", "{}", "\"c\"").put(
        "/m/model.safetensors.index.json",
        index,
        "\"i\"",
    );
    server.put("/m/model-00001-of-00002.safetensors", bytes(10, 1), "\"1\"");
    let env = TestStore::new(&server);
    let error = env.pull(&server.at("/m")).unwrap_err();
    assert!(error.to_string().contains("model-00002-of-00002.safetensors"), "{error}");
    server.put("/m/model-00002-of-00002.safetensors", bytes(20, 2), "\"2\"");
    let model = env.pull(&server.at("/m")).unwrap();
    assert_eq!(model.manifest.files.len(), 4);
    assert_eq!(model.path(None).unwrap(), model.folder);
    server.put("/n/config.json", "{}", "\"c\"");
    server.put(
        "/n/model.safetensors.index.json",
        "{\"weight_map\":{\"a\":\"../x.safetensors\"}}",
        "\"i\"",
    );
    let error = env.pull(&server.at("/n")).unwrap_err();
    assert!(error.to_string().contains("../x.safetensors"), "{error}");
}

#[test]
fn a_folder_without_a_model_is_reported() {
    let server = Server::start();
    server.put("/m/config.json", "{}", "\"c\"").put("/m/pytorch_model.bin", "x", "\"p\"");
    let env = TestStore::new(&server);
    let error = env.pull(&server.at("/m")).unwrap_err();
    assert!(
        matches!(&error, Error::NoModel { found, .. } if found.contains("config.json")),
        "{error}"
    );
    assert!(matches!(env.pull(&server.at("/x.gguf")), Err(Error::HttpStatus { status: 404, .. })));
}

#[test]
fn a_server_without_head_requests_gets_a_request_for_one_byte() {
    let server = Server::start();
    let content = bytes(2 * PIECE, 1);
    server.put("/m.gguf", content.clone(), "\"w\"");
    let env = TestStore::new(&server);
    server.rule_of_all("/m.gguf", 1, Act::Status(405, vec![]));
    env.pull(&server.at("/m.gguf")).unwrap();
    assert_eq!(env.read(&server.at("/m.gguf"), "m.gguf"), content);
}

#[test]
fn a_foreign_manifest_is_no_harm() {
    let server = Server::start();
    server.put("/m/config.json", "{}", "\"c\"").put("/m/model.safetensors", "w", "\"w\"");
    let env = TestStore::new(&server);
    for foreign in [
        "{\"name\":\"a web app\"}",
        "[",
        "{\"format\":1,\"files\":[{\"name\":\"../x\",\"bytes\":1}]}",
    ] {
        server.put("/m/manifest.json", foreign, "\"f\"");
        let model = env.pull(&server.at("/m")).unwrap();
        assert_eq!(model.manifest.files.len(), 2, "{foreign}");
    }
}

#[test]
fn redirects_in_a_circle_and_to_nowhere_end() {
    let server = Server::start();
    let env = TestStore::new(&server);
    server.rule_of_all("/a.gguf", usize::MAX, Act::Redirect("/a.gguf".into()));
    let error = env.pull(&server.at("/a.gguf")).unwrap_err();
    assert!(error.to_string().contains("redirects"), "{error}");
    server.rule_of_all("/b.gguf", usize::MAX, Act::Redirect("file:///etc/passwd".into()));
    let error = env.pull(&server.at("/b.gguf")).unwrap_err();
    assert!(error.to_string().contains("file:///etc/passwd"), "{error}");
}

//! Names of models, and the places that are searched for them.

use std::path::Path;

use setun::{Error, ErrorCode, Model, find_model};

/// A model that is in the repository.
const STORIES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/golden/real-tinystories-1m");

#[test]
fn a_path_comes_first_and_gives_the_name() {
    let found = find_model(STORIES).expect("a folder");
    assert_eq!(found.name, "real-tinystories-1m");
    assert_eq!((found.path.as_path(), found.is_stored), (Path::new(STORIES), false));
    assert_eq!(Model::open(STORIES).expect("a model").name(), "real-tinystories-1m");
}

#[test]
fn a_path_that_is_not_there_says_what_is() {
    for path in ["./nope", "/no/such/model", "nope.gguf/a/b/c/d"] {
        let error = find_model(path).expect_err("nothing");
        assert!(matches!(error, Error::NoModel { .. }), "{error}");
        assert_eq!(error.code(), ErrorCode::NotFound);
    }
    let error = find_model("./nope").expect_err("nothing").to_string();
    assert!(error.contains("`.` has ") && error.contains("Cargo.toml"), "{error}");
}

#[cfg(feature = "hub")]
#[test]
fn a_name_that_is_not_here_says_how_to_pull_it() {
    for (name, hint, pulled) in [
        ("owner/name", "`setun models pull owner/name` pulls it", true),
        ("hf:owner/name@v1", "`setun models pull hf:owner/name@v1` pulls it", true),
        ("https://h.example/m.gguf", "`setun models pull https://h.example/m.gguf` pulls it", true),
        ("bitnet-2b4t", "did you mean `bitnet-2b-4t`?", false),
        ("no-such-model", "`setun models search` lists the catalog", false),
    ] {
        let error = Model::open(name).err().expect("no model");
        assert_eq!(error.code(), ErrorCode::NotFound);
        let Error::UnknownModel { can_pull, .. } = &error else { panic!("{error}") };
        assert_eq!(*can_pull, pulled, "{name}");
        let text = error.to_string();
        assert!(text.starts_with(&format!("no model `{name}`: ")), "{text}");
        assert!(
            text.contains("nor such a model in the store at `") && text.contains(hint),
            "{text}"
        );
    }
    let error = Model::open("hf:no-name").err().expect("no name");
    assert_eq!(error.code(), ErrorCode::BadOption);
}

#[cfg(not(feature = "hub"))]
#[test]
fn a_build_without_the_store_says_so() {
    let error = Model::open("owner/name").err().expect("no model").to_string();
    assert!(error.contains("names of pulled models need the cargo feature `hub`"), "{error}");
}

//! A damaged store: what is bad is named, what is good is used, and a pull repairs it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use setun_hub::{Error, PullEvent};

use crate::{
    server::{Act, Server},
    support::{CHUNK, COMMIT, PIECE, TestStore, bytes, hub_path, list_path, put_hub},
};

/// Two models, of which the first is to be damaged, and its weights.
fn two_models() -> (Server, TestStore, Vec<u8>) {
    let (server, content) = (Server::start(), bytes(4 * PIECE + 5, 1));
    put_hub(&server, "o/bad", &[("config.json", b"{}"), ("model.safetensors", &content)]);
    put_hub(&server, "o/good", &[("m.gguf", &bytes(PIECE, 2))]);
    let env = TestStore::new(&server);
    for name in ["o/bad", "o/good"] {
        env.pull(name).unwrap();
    }
    (server, env, content)
}

/// A model whose older revision is whole, and the folders of both.
fn two_revisions() -> (Server, TestStore, [PathBuf; 2]) {
    const LATER: &str = "fedcba9876543210fedcba9876543210fedcba98";
    let server = Server::start();
    put_hub(&server, "o/n", &[("m.gguf", &bytes(PIECE, 1))]);
    let env = TestStore::new(&server);
    let older = env.pull("o/n").unwrap().folder;
    let list =
        format!("{{\"sha\":\"{LATER}\",\"siblings\":[{{\"rfilename\":\"m.gguf\",\"size\":9}}]}}");
    server.put(&list_path("o/n", "main"), list, "\"later\"");
    server.put(&hub_path("o/n", "m.gguf").replace(COMMIT, LATER), bytes(9, 2), "\"later\"");
    let current = env.pull("o/n").unwrap().folder;
    assert_ne!(older, current);
    (server, env, [older, current])
}

/// What is at the place of a file of the damaged model.
fn put(path: &Path, what: &str) {
    let _ = fs::remove_file(path);
    match what {
        "a folder" => fs::create_dir(path).unwrap(),
        "nothing" => {}
        "a pipe" => {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.expect("mkfifo").success());
        }
        "a terabyte" => fs::File::create(path).unwrap().set_len(1 << 40).unwrap(),
        text => fs::write(path, text).unwrap(),
    }
}

fn names(env: &TestStore) -> Vec<String> {
    env.store.list().unwrap().into_iter().map(|model| model.id.name).collect()
}

#[cfg(unix)]
const DAMAGES: [&str; 7] =
    ["", "{", "{\"format\":1}", "\u{0}\u{0}", "a folder", "a terabyte", "a pipe"];
#[cfg(not(unix))]
const DAMAGES: [&str; 6] = ["", "{", "{\"format\":1}", "\u{0}\u{0}", "a folder", "a terabyte"];

#[test]
fn a_damaged_manifest_is_named_and_its_model_is_not_listed() {
    for damage in DAMAGES {
        let (_server, env, _) = two_models();
        let folder = env.store.get("o/bad").unwrap().folder;
        put(&folder.join("manifest.json"), damage);
        let survey = env.store.survey().unwrap();
        assert_eq!(survey.models.len(), 1, "{damage}");
        let [damaged] = &survey.damaged[..] else { panic!("{damage}: {:?}", survey.damaged) };
        assert!(damaged.model.as_ref().unwrap().ends_with("o/bad"), "{damaged:?}");
        assert!(damaged.reason.contains("its manifest is damaged"), "{damaged:?}");
        assert_eq!(damaged.path, folder);
        assert!(env.store.damaged("o/bad").unwrap() == survey.damaged);
        assert_eq!(names(&env), ["good"]);
        let error = env.store.resolve("o/bad").unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{damage}: {error}");
        env.store.resolve("o/good").unwrap();
        assert_eq!(env.store.disk_usage().unwrap().len(), 2);
    }
}

#[test]
fn an_older_revision_never_takes_the_place_of_a_damaged_one() {
    for (file, damage) in [("m.gguf", "short"), ("m.gguf", "nothing"), ("manifest.json", "{")] {
        for has_references in [true, false] {
            let (_server, env, [older, current]) = two_revisions();
            put(&current.join(file), damage);
            if !has_references {
                fs::remove_file(current.parent().unwrap().join("refs.json")).unwrap();
            }
            let mut settings = env.store.settings().clone();
            settings.offline = Some("a test");
            let offline = setun_hub::ModelStore::open(settings);
            let pulled = offline.pull("o/n", &env.options, &|_| ()).map(|model| model.folder);
            for found in [env.store.resolve("o/n"), env.store.resolve("o/n@main"), pulled] {
                if !has_references && matches!(found, Err(Error::NotFound { .. })) {
                    continue; // nothing tells what `main` was
                }
                let Err(Error::Damaged { folder, other, .. }) = &found else { panic!("{found:?}") };
                assert_eq!(*folder, current, "{file} {damage}");
                assert!(other.contains(&older.display().to_string()), "{other}");
            }
            assert_eq!(env.store.get(&format!("o/n@{COMMIT}")).unwrap().folder, older);
            assert_eq!(env.pull("o/n").unwrap().folder, current);
            assert_eq!(env.store.get("o/n").unwrap().folder, current);
        }
    }
}

#[test]
fn an_older_revision_is_used_where_the_current_one_was_removed() {
    let (_server, env, [older, current]) = two_revisions();
    let name = current.file_name().unwrap().to_str().unwrap();
    env.remove(&format!("o/n@{name}")).unwrap();
    assert_eq!(env.store.get("o/n").unwrap().folder, older);
}

#[test]
fn a_pull_restores_a_damaged_manifest_without_the_weights() {
    for damage in DAMAGES {
        let (server, env, content) = two_models();
        let folder = env.store.get("o/bad").unwrap().folder;
        put(&folder.join("manifest.json"), damage);
        server.requests();
        env.pull("o/bad").unwrap();
        assert_eq!(env.read("o/bad", "model.safetensors"), content);
        assert_eq!(server.starts(&hub_path("o/bad", "model.safetensors")), [0_u64; 0], "{damage}");
        assert!(env.store.survey().unwrap().damaged.is_empty());
        let model = env.store.get("o/bad").unwrap();
        assert!(model.verify(&env.options, |_| ()).unwrap().iter().all(|check| check.good));
    }
}

#[test]
fn weights_without_a_manifest_that_are_wrong_come_once_more() {
    let (server, env, content) = two_models();
    let folder = env.store.get("o/bad").unwrap().folder;
    put(&folder.join("manifest.json"), "{");
    let mut wrong = content.clone();
    wrong[3 * PIECE] ^= 1;
    fs::write(folder.join("model.safetensors"), wrong).unwrap();
    server.requests();
    env.pull("o/bad").unwrap();
    assert_eq!(env.read("o/bad", "model.safetensors"), content);
    assert_eq!(server.starts(&hub_path("o/bad", "model.safetensors")).len(), 5);
}

#[test]
fn what_is_damaged_is_removed_all_the_same() {
    for damage in DAMAGES {
        let (_server, env, _) = two_models();
        let folder = env.store.get("o/bad").unwrap().folder;
        put(&folder.join("manifest.json"), damage);
        put(&folder.parent().unwrap().join("refs.json"), damage);
        put(&env.folder.path().join("aliases.json"), damage);
        assert!(env.remove("o/bad").unwrap() >= CHUNK, "{damage}");
        assert!(!folder.parent().unwrap().exists());
        assert!(matches!(env.remove("o/bad"), Err(Error::NotFound { .. })));
        assert_eq!(names(&env), ["good"]);
    }
}

/// As a removal leaves it that is killed in the midst.
#[test]
fn a_removal_that_was_broken_off_goes_on() {
    let (_server, env, _) = two_models();
    let folder = env.store.get("o/bad").unwrap().folder;
    fs::remove_file(folder.join("manifest.json")).unwrap();
    assert_eq!(names(&env), ["good"]);
    assert!(env.store.survey().unwrap().damaged.is_empty());
    env.remove("o/bad").unwrap();
    env.pull("o/bad").unwrap();
    // The last revision is gone, and its model is not.
    fs::remove_dir_all(&env.store.get("o/bad").unwrap().folder).unwrap();
    env.remove("o/bad").unwrap();
    assert!(!folder.parent().unwrap().exists());
}

#[test]
fn damaged_references_are_found_out_again() {
    for damage in DAMAGES {
        let (_server, env, _) = two_models();
        let folder = env.store.get("o/bad").unwrap().folder;
        put(&folder.parent().unwrap().join("refs.json"), damage);
        assert_eq!(env.store.get("o/bad").unwrap().folder, folder, "the one pulled last");
        env.pull("o/bad").unwrap();
        assert_eq!(env.store.get("o/bad@main").unwrap().folder, folder, "{damage}");
    }
}

#[test]
fn damaged_aliases_count_as_none_and_are_kept_beside() {
    for damage in DAMAGES {
        let (_server, env, _) = two_models();
        env.store.alias("small", Some("o/good")).unwrap();
        let path = env.folder.path().join("aliases.json");
        put(&path, damage);
        assert!(env.store.aliases().unwrap().is_empty(), "{damage}");
        let error = env.store.resolve("small").unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{damage}: {error}");
        let words = if damage == "nothing" { "no alias" } else { "the aliases are damaged: " };
        assert!(error.to_string().contains(words), "{damage}: {error}");
        let survey = env.store.survey().unwrap();
        assert_eq!((survey.models.len(), survey.damaged.len()), (2, 1));
        assert_eq!((&survey.damaged[0].model, &survey.damaged[0].path), (&None, &path));
        env.store.alias("small", Some("o/bad")).unwrap();
        assert_eq!(env.store.aliases().unwrap()["small"], "o/bad");
        assert!(fs::symlink_metadata(path.with_extension("json.damaged")).is_ok(), "{damage}");
        assert!(env.store.survey().unwrap().damaged.is_empty());
    }
}

#[test]
fn a_later_format_is_named_and_nothing_of_it_is_changed() {
    let (_server, env, _) = two_models();
    let path = env.store.get("o/bad").unwrap().folder.join("manifest.json");
    let text = fs::read_to_string(&path).unwrap().replace("\"format\": 1", "\"format\": 2");
    fs::write(&path, &text).unwrap();
    let survey = env.store.survey().unwrap();
    assert_eq!((names(&env), survey.damaged.len()), (vec!["good".to_owned()], 1));
    assert!(survey.damaged[0].reason.contains("format 2"), "{:?}", survey.damaged);
    assert!(env.pull("o/bad").unwrap_err().to_string().contains("format 2"));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    env.remove("o/bad").unwrap();
}

#[test]
fn a_pull_that_compares_hashes_brings_the_damaged_chunks_alone() {
    let (server, mut env, content) = two_models();
    env.options.verify_stored = true;
    let model = env.store.get("o/bad").unwrap();
    let path = model.folder.join("model.safetensors");
    let mut damaged = content.clone();
    for chunk in [1, 3] {
        damaged[chunk * PIECE + 9] ^= 4;
    }
    fs::write(&path, damaged).unwrap();
    assert!(!model.verify(&env.options, |_| ()).unwrap()[1].good);
    server.requests();
    env.events();
    env.pull("o/bad").unwrap();
    assert_eq!(server.starts(&hub_path("o/bad", "model.safetensors")), [CHUNK, 3 * CHUNK]);
    let is_told =
        |event: &PullEvent| matches!(event, PullEvent::Corrupt { chunks, .. } if *chunks == [1, 3]);
    assert!(env.events().iter().any(is_told));
    assert_eq!(env.read("o/bad", "model.safetensors"), content);
    assert!(env.store.get("o/bad").unwrap().verify(&env.options, |_| ()).unwrap()[1].good);
    assert_eq!(env.files().iter().filter(|name| name.ends_with(".chunks")).count(), 0);
}

/// As long as it is not whole again, the model is absent; what was sound is not pulled again.
#[test]
fn a_repair_that_is_broken_off_goes_on() {
    let (server, mut env, content) = two_models();
    env.options.attempts = 1;
    env.options.verify_stored = true;
    let path = env.store.get("o/bad").unwrap().folder.join("model.safetensors");
    let mut damaged = content.clone();
    damaged[2 * PIECE] ^= 1;
    fs::write(&path, damaged).unwrap();
    let address = hub_path("o/bad", "model.safetensors");
    server.rule(&address, 1, Act::Break(0));
    env.pull("o/bad").unwrap_err();
    assert!(env.store.resolve("o/bad").is_err());
    server.requests();
    env.options.verify_stored = false; // what is missing is known
    env.pull("o/bad").unwrap();
    assert_eq!(server.starts(&address), [2 * CHUNK]);
    assert_eq!(env.read("o/bad", "model.safetensors"), content);
}

#[test]
fn files_that_are_shorter_or_gone_are_named_and_come_once_more() {
    for damage in ["short", "nothing", "a folder"] {
        let (_server, env, content) = two_models();
        let path = env.store.get("o/bad").unwrap().folder.join("model.safetensors");
        put(&path, damage);
        let survey = env.store.survey().unwrap();
        assert_eq!((names(&env), survey.damaged.len()), (vec!["good".to_owned()], 1));
        assert!(survey.damaged[0].reason.contains("`model.safetensors`"), "{:?}", survey.damaged);
        env.pull("o/bad").unwrap();
        assert_eq!(env.read("o/bad", "model.safetensors"), content, "{damage}");
    }
}

#[test]
fn sizes_alone_are_compared_unless_hashes_are_asked_for() {
    let (server, mut env, content) = two_models();
    let path = env.store.get("o/bad").unwrap().folder.join("model.safetensors");
    let mut damaged = content.clone();
    damaged[0] ^= 1;
    fs::write(&path, &damaged).unwrap();
    server.requests();
    env.events();
    env.pull("o/bad").unwrap();
    assert_eq!(fs::read(&path).unwrap(), damaged);
    let is_read = |event: &PullEvent| matches!(event, PullEvent::Verifying { .. });
    assert!(!env.events().iter().any(is_read), "no file is read");
    // A commit is known to be the same without a request, but not to be sound.
    env.options.verify_stored = true;
    env.pull(&format!("o/bad@{COMMIT}")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), content);
    assert_eq!(env.events().iter().filter(|event| is_read(event)).count(), 5);
    server.requests();
    env.pull(&format!("o/bad@{COMMIT}")).unwrap();
    assert!(server.requests().is_empty());
}

#[test]
fn aliases_that_stand_for_nothing_are_told() {
    let (_server, env, _) = two_models();
    env.store.alias("small", Some("o/bad")).unwrap();
    env.store.alias("smaller", Some("small")).unwrap();
    env.store.alias("other", Some("o/good")).unwrap();
    assert!(env.store.dangling_aliases().unwrap().is_empty());
    env.remove("small").unwrap();
    let dangling = env.store.dangling_aliases().unwrap();
    let pair = |alias: &str, name: &str| (alias.to_owned(), name.to_owned());
    assert_eq!(dangling, [pair("small", "o/bad"), pair("smaller", "small")]);
    let error = env.store.resolve("small").unwrap_err().to_string();
    assert!(error.contains("it stands for `o/bad`"), "{error}");
}

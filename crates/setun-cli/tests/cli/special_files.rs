//! Pipes, sockets, devices and endless files in place of those that a command reads.

use std::{fs, os::unix::net::UnixListener, path::Path, process::Command};

use crate::support::{STORIES, TINY, copy_without, model, setun};

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

/// Each file of a model in turn. Every command ends at once: nobody writes to the pipe.
#[test]
fn a_pipe_in_place_of_a_models_file_is_refused() {
    for name in ["config.json", "generation_config.json", "tokenizer.json", "model.safetensors"] {
        let (_keep, folder) = copy_without(STORIES, &[name]);
        pipe(&folder.join(name));
        let error = setun(&["run", "--model", &text(&folder), "Once"]).failure();
        let is_told = error.contains("it is a pipe, expected a file");
        // A folder without these two is no model.
        let is_absent = ["config.json", "model.safetensors"].contains(&name);
        assert!(is_told || (is_absent && error.contains("[not-found]")), "{name}: {error}");
    }
    let keep = tempfile::tempdir().expect("a folder");
    for name in ["m.gguf", "m.setun", "m.safetensors", "m.onnx"] {
        let path = keep.path().join(name);
        pipe(&path);
        let error = setun(&["inspect", &text(&path)]).failure();
        assert!(error.contains("it is a pipe, expected a file"), "{name}: {error}");
    }
}

#[test]
fn other_files_are_refused_by_their_type() {
    let keep = tempfile::tempdir().expect("a folder");
    let (fifo, socket) = (keep.path().join("pipe"), keep.path().join("socket"));
    pipe(&fifo);
    let _listener = UnixListener::bind(&socket).expect("a socket");
    let stories = model(STORIES);
    for (path, found) in
        [(text(&fifo), "a pipe"), (text(&socket), "a socket"), ("/dev/zero".into(), "a device")]
    {
        for args in [
            &["run", "--config", &path, "Once"][..],
            &["run", "--model", &stories, "--grammar", &path, "Once"],
            &["run", "--model", &stories, "--json-schema", &path, "Once"],
            &["run", "--model", &stories, "--template", &path],
            &["perplexity", "--model", &stories, "--text", &path],
        ] {
            let error = setun(args).failure();
            let words = format!("cannot read `{path}`: it is {found}, expected a file");
            assert!(error.contains("[io]") && error.contains(&words), "{args:?}: {error}");
        }
    }
}

#[test]
fn a_terabyte_of_nothing_is_refused_by_its_size() {
    let (_keep, folder) = copy_without(TINY, &[]);
    let long = folder.join("tokenizer.json");
    fs::File::create(&long).expect("a file").set_len(1 << 40).expect("a hole");
    let error = setun(&["inspect", &text(&folder)]).failure();
    assert!(error.contains("it has 1099511627776 bytes, at most 268435456 are read"), "{error}");
    let error = setun(&["run", "--config", &text(&long), "Once"]).failure();
    assert!(error.contains("at most 16777216 are read"), "{error}");
    let stories = model(STORIES);
    let error = setun(&["perplexity", "--model", &stories, "--text", &text(&long)]).failure();
    assert!(error.contains("at most 1073741824 are read"), "{error}");
    // As weights a hole has no header.
    for name in ["m.gguf", "m.setun", "m.safetensors"] {
        let path = folder.join(name);
        fs::rename(&long, &path).expect("a name");
        let error = setun(&["inspect", &text(&path)]).failure();
        assert!(error.contains("[bad-checkpoint]"), "{name}: {error}");
        fs::rename(&path, &long).expect("a name");
    }
}

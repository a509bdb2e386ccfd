use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn files_appear_when_all_are_whole() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path().join("out");
    let mut destination = Destination::folder(&folder, false).expect("a destination");
    destination.write("b", 1, b"23").expect("a part");
    destination.write("a", 0, b"x").expect("a part");
    destination.write("b", 0, b"1").expect("a part");
    assert!(names(&folder).iter().all(|name| name == ".setun.lock" || name.contains(".part")));
    destination.publish("a", &[]).expect("all is whole");
    assert_eq!(names(&folder), ["a", "b"]);
    assert_eq!(fs::read(folder.join("b")).expect("b"), b"123");
}

#[test]
fn what_is_dropped_leaves_nothing_not_even_its_folder() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path().join("out");
    let mut destination = Destination::folder(&folder, false).expect("a destination");
    destination.write("a", 0, b"x").expect("a part");
    drop(destination);
    assert_eq!(names(keep.path()), [""; 0]);
    assert!(interrupt::unfinished().iter().all(|path| !path.starts_with(&folder)));
}

#[test]
fn a_second_writer_is_refused_until_the_first_has_ended() {
    let keep = tempfile::tempdir().expect("a folder");
    let path = keep.path().join("m.setun");
    let (mut first, name) = Destination::file(&path, false).expect("a destination");
    first.write(&name, 0, b"x").expect("a part");
    let second = || Destination::file(&path, true).map(|_| ());
    assert!(matches!(second(), Err(CliError::Locked { .. })));
    // Another file of the folder is free.
    Destination::file(&keep.path().join("n.setun"), false).map(|_| ()).expect("a destination");
    first.publish_first().expect("it is whole");
    second().expect("the first has ended");
    let (third, name) = Destination::file(&path, false).expect("a destination");
    assert!(matches!(third.check(&name), Err(CliError::Exists { .. })));
    drop(third);
    assert_eq!(names(keep.path()), ["m.setun"]);
}

/// As processes leave it that are killed while they write, and while they give names.
#[test]
fn the_files_of_a_killed_process_are_removed_and_no_others() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path();
    let put = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    put(".setun.lock", r#"{"id":"a-1","names":["weights","config"]}"#);
    put("config.a-1.part", "half");
    put("weights", "of the killed process");
    put("notes.part", "mine");
    assert!(matches!(Destination::folder(folder, false), Err(CliError::NotEmpty { first, .. })
        if first == "notes.part"));
    // The note stays as long as what it says is true.
    assert_eq!(names(folder), [".setun.lock", "notes.part", "weights"]);
    fs::remove_file(folder.join("notes.part")).expect("mine");
    let mut destination = Destination::folder(folder, false).expect("a destination");
    for name in ["weights", "config"] {
        destination.write(name, 0, b"new").expect("a part");
    }
    destination.publish("config", &[]).expect("all is whole");
    assert_eq!(names(folder), ["config", "weights"]);

    // Once the last name is given, all is whole and nobody's to overwrite.
    put(".setun.lock", r#"{"id":"a-1","names":["weights","config"]}"#);
    assert!(matches!(Destination::folder(folder, false), Err(CliError::NotEmpty { .. })));
    for damaged in ["", "{", "{\"id\":\"a-", "\u{0}"] {
        put(".setun.lock", damaged);
        assert!(matches!(Destination::folder(folder, false), Err(CliError::NotEmpty { .. })));
    }
}

/// Wherever a process is killed that replaces several files, the next one finds the old files or the
/// new ones, whole.
#[test]
fn a_kill_between_names_loses_neither_the_old_files_nor_the_new_ones() {
    let steps = [
        ("config", "config.old.a-1.part"),
        ("weights", "weights.old.a-1.part"),
        ("index", "index.old.a-1.part"),
        ("texts.a-1.part", "texts"),
        ("weights.a-1.part", "weights"),
        ("config.a-1.part", "config"),
    ];
    for killed in 0..=steps.len() {
        let keep = tempfile::tempdir().expect("a folder");
        let folder = keep.path();
        let put = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
        put(".setun.lock", r#"{"id":"a-1","names":["texts","weights","config"]}"#);
        for name in ["config", "index", "weights"] {
            put(name, "old");
        }
        for name in ["config", "texts", "weights"] {
            put(&format!("{name}.a-1.part"), "new");
        }
        for (from, to) in &steps[..killed] {
            fs::rename(folder.join(from), folder.join(to)).expect("a name");
        }
        // Without force it is refused: what it finds is somebody's.
        assert!(matches!(Destination::folder(folder, false), Err(CliError::NotEmpty { .. })));
        let (content, expected) = if killed <= 3 {
            ("old", ["config", "index", "weights"])
        } else {
            ("new", ["config", "texts", "weights"])
        };
        assert_eq!(names(folder), expected, "{killed}");
        for name in expected {
            assert_eq!(fs::read_to_string(folder.join(name)).expect(name), content, "{killed}");
        }
    }
}

/// Names of a note are anybody's, so they lead nowhere else.
#[test]
fn a_note_names_files_of_its_folder_alone() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path().join("out");
    fs::create_dir(&folder).expect("a folder");
    let notes = [("a-1", "../a"), ("a-1", "/a"), ("a-1", "a/b"), ("a-1", ".."), ("/../a", "b")];
    for (id, name) in notes {
        let note = serde_json::json!({"id": id, "names": [name, "config"]}).to_string();
        fs::write(folder.join(".setun.lock"), &note).expect("a file");
        fs::write(folder.join("config.a-1.part"), "new").expect("a file");
        let found = Destination::folder(&folder, true).map(|_| ());
        assert!(matches!(found, Err(CliError::NoLock { .. })), "{name}");
        assert_eq!(names(&folder), [".setun.lock", "config.a-1.part"], "{name}");
    }
}

#[test]
fn what_is_no_lock_is_left_as_it_is() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path();
    let lock = folder.join(".m.setun.lock");
    let take = || Destination::file(&folder.join("m.setun"), true).map(|_| ());
    for content in ["mine", "[1]", "{\"name\":1}"] {
        fs::write(&lock, content).expect("a file");
        let error = take().expect_err("it is somebody's file").to_string();
        assert!(error.contains("is no lock of setun"), "{error}");
        assert_eq!(fs::read_to_string(&lock).expect("it is there"), content);
    }
    fs::remove_file(&lock).expect("a file");
    fs::create_dir(&lock).expect("a folder");
    assert!(matches!(take(), Err(CliError::NotAFile { found: "a folder", .. })));
    fs::remove_dir(&lock).expect("a folder");
    // What a link leads to would be overwritten, and may be anybody's.
    #[cfg(unix)]
    for content in ["", "{\"id\":\"\",\"names\":[]}"] {
        let other = folder.join("other");
        fs::write(&other, content).expect("a file");
        std::os::unix::fs::symlink(&other, &lock).expect("a link");
        assert!(matches!(take(), Err(CliError::NotAFile { found: "a symbolic link", .. })));
        assert_eq!(fs::read_to_string(&other).expect("it is there"), content);
        fs::remove_file(&lock).expect("the link");
    }
    take().expect("it is free");
}

/// Whichever of its files cannot be given its name, the old model is there again.
#[test]
fn names_that_cannot_be_given_leave_what_was_there() {
    for lost in ["config", "weights", "texts"] {
        for before in [&["config", "index", "weights"][..], &["texts"], &[]] {
            let keep = tempfile::tempdir().expect("a folder");
            let folder = keep.path();
            for name in before {
                fs::write(folder.join(name), "old").expect("a file");
            }
            let mut destination = Destination::folder(folder, true).expect("a destination");
            for name in ["config", "texts", "weights"] {
                destination.write(name, 0, b"new").expect("a part");
            }
            fs::remove_file(destination.part_path(lost)).expect("it is lost");
            let error = destination.publish("config", &["index"]).expect_err("one is lost");
            assert!(matches!(error, CliError::Write { .. }), "{error}");
            assert_eq!(names(folder), before, "{lost}");
            for name in before {
                assert_eq!(fs::read(folder.join(name)).expect("the old one"), b"old", "{name}");
            }
        }
    }
}

#[test]
fn names_that_are_given_leave_nothing_of_the_old_ones() {
    let keep = tempfile::tempdir().expect("a folder");
    let folder = keep.path();
    for name in ["config", "index", "notes", "weights"] {
        fs::write(folder.join(name), "old").expect("a file");
    }
    let mut destination = Destination::folder(folder, true).expect("a destination");
    for name in ["config", "weights"] {
        destination.write(name, 0, b"new").expect("a part");
    }
    destination.publish("config", &["config", "index"]).expect("all is whole");
    assert_eq!(names(folder), ["config", "notes", "weights"]);
    assert_eq!(fs::read(folder.join("weights")).expect("the new ones"), b"new");
}

/// Elsewhere a path is text by itself.
#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_is_refused_and_not_changed() {
    use std::os::unix::ffi::OsStrExt;
    let keep = tempfile::tempdir().expect("a folder");
    let path = keep.path().join(std::ffi::OsStr::from_bytes(b"m\xff.setun"));
    let error = Destination::file(&path, false).map(|_| ()).expect_err("it is no text");
    assert!(error.to_string().contains("is not UTF-8"), "{error}");
    assert_eq!(names(keep.path()), [""; 0]);
}

#[test]
fn an_export_that_fails_leaves_what_was_there() {
    let keep = tempfile::tempdir().expect("a folder");
    let path = keep.path().join("x");
    fs::write(&path, "before").expect("a file");
    let failing = |file: &mut (dyn Write + Send)| {
        file.write_all(b"half").expect("written");
        Err(CliError::Interrupted { status: 130 })
    };
    assert!(matches!(export(&path, false, failing), Err(CliError::Exists { .. })));
    assert!(matches!(export(&path, true, failing), Err(CliError::Interrupted { .. })));
    assert_eq!(fs::read(&path).expect("the file"), b"before");
    let whole = |file: &mut (dyn Write + Send)| {
        file.write_all(b"after").expect("written");
        Ok(())
    };
    export(&path, true, whole).expect("it is written");
    assert_eq!(fs::read(&path).expect("the file"), b"after");
    assert_eq!(names(keep.path()), ["x"]);
}

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
    for damaged in ["", "{", "[1]", "\u{0}"] {
        put(".setun.lock", damaged);
        assert!(matches!(Destination::folder(folder, false), Err(CliError::NotEmpty { .. })));
    }
}

#[test]
fn an_export_that_fails_leaves_what_was_there() {
    let keep = tempfile::tempdir().expect("a folder");
    let path = keep.path().join("x");
    fs::write(&path, "before").expect("a file");
    let failing = |file: &mut dyn Write| {
        file.write_all(b"half").expect("written");
        Err(CliError::Interrupted)
    };
    assert!(matches!(export(&path, false, failing), Err(CliError::Exists { .. })));
    assert!(matches!(export(&path, true, failing), Err(CliError::Interrupted)));
    assert_eq!(fs::read(&path).expect("the file"), b"before");
    let whole = |file: &mut dyn Write| {
        file.write_all(b"after").expect("written");
        Ok(())
    };
    export(&path, true, whole).expect("it is written");
    assert_eq!(fs::read(&path).expect("the file"), b"after");
    assert_eq!(names(keep.path()), ["x"]);
}

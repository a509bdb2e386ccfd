//! `setun sql` and `setun batch`: another command gets what follows them as it was typed.

use std::{
    ffi::OsStr,
    fs,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::support::{send, setun, statuses};

/// Prints its name and each argument on a line.
const PRINTS: &str = "#!/bin/sh\nprintf '%s\\n' \"${0##*/}\" \"$@\"\n";

/// A folder that holds a copy of the command alone.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let command = folder.path().join("bin/setun");
        fs::create_dir(folder.path().join("bin")).expect("a folder");
        if fs::hard_link(crate::PROGRAM, &command).is_err() {
            shell("cp \"$0\" \"$1\"", &[crate::PROGRAM.as_ref(), &command]);
        }
        Self { folder }
    }

    /// A script as `setun-batch` in a folder.
    fn with(self, folder: &str, script: &str) -> Self {
        let folder = self.path(folder);
        fs::create_dir_all(&folder).expect("a folder");
        let write = "printf %s \"$0\" > \"$1\" && chmod +x \"$1\"";
        shell(write, &[script.as_ref(), &folder.join("setun-batch")]);
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, with the folder `path` on the path.
    fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(self.path("bin/setun"));
        command.args(arguments).stdin(Stdio::null());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("path").display()));
        command
    }

    fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Output {
        self.command(arguments).output().expect("its output")
    }
}

/// Writes programs: a file that this process has open may not be run, nor while a child of another test inherits it.
fn shell(script: &str, arguments: &[&Path]) {
    let status = Command::new("sh").args(["-c", script]).args(arguments).status();
    assert!(status.expect("a shell").success(), "{script}");
}

/// Standard output of a command that succeeded without a word.
#[track_caller]
fn printed(output: &Output) -> &[u8] {
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    &output.stdout
}

#[test]
fn arguments_arrive_as_they_were_typed() {
    let place = Place::new().with("bin", PRINTS);
    let odd =
        [b"a b", &b"\xff'\"$x"[..], b"", b"--help", b"--", b"-1", b"*"].map(OsStr::from_bytes);
    let expected = |first: &str| {
        let lines = odd.iter().map(|argument| argument.as_bytes());
        let lines: Vec<_> = first.lines().map(str::as_bytes).chain(lines).collect();
        [&lines.join(&b'\n')[..], b"\n"].concat()
    };
    for (subcommand, first) in [("sql", "setun-batch\nsql"), ("batch", "setun-batch")] {
        let arguments = [&[OsStr::new(subcommand)][..], &odd].concat();
        assert_eq!(printed(&place.run(&arguments)), expected(first), "{subcommand}");
        let alone = place.run(&[subcommand]);
        assert_eq!(printed(&alone), format!("{first}\n").as_bytes());
    }
}

#[test]
fn the_command_beside_is_taken_before_one_on_the_path() {
    let script = |word: &str| format!("#!/bin/sh\necho {word}\n");
    let place = Place::new().with("path", &script("path"));
    assert_eq!(printed(&place.run(&["batch", "status"])), b"path\n");
    let place = place.with("bin", &script("beside"));
    assert_eq!(printed(&place.run(&["batch", "status"])), b"beside\n");
    // A link is elsewhere than the command; a folder is no command.
    let link = place.path("link");
    std::os::unix::fs::symlink(place.path("bin/setun"), &link).expect("a link");
    let output = Command::new(link).args(["sql"]).output().expect("its output");
    assert_eq!(printed(&output), b"beside\n");
    fs::remove_file(place.path("bin/setun-batch")).expect("it is there");
    fs::create_dir(place.path("bin/setun-batch")).expect("a folder");
    assert_eq!(printed(&place.run(&["sql"])), b"path\n");
}

#[test]
fn without_the_command_its_installation_is_said() {
    let place = Place::new();
    for subcommand in ["sql", "batch"] {
        for more in [&["--help"][..], &["run", "--in", "a"], &[]] {
            let output = place.run(&[&[subcommand], more].concat());
            let words = String::from_utf8(output.stderr).expect("UTF-8");
            assert_eq!((output.status.code(), &*output.stdout), (Some(127), &b""[..]), "{words}");
            assert_eq!(words.lines().count(), 1, "{words}");
            let expected =
                format!("setun: [not-found] `setun {subcommand}` needs the command `setun-batch`");
            assert!(words.starts_with(&expected), "{words}");
            let (_, install) = words.trim_end().split_once("this installs it: ").expect(&words);
            is_of_this_repository(install);
        }
    }
}

/// The package that a line installs has the command.
fn is_of_this_repository(install: &str) {
    let folder = install.strip_prefix("cargo install --locked --path ").expect(install);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let manifest = fs::read_to_string(manifest.join("Cargo.toml")).expect("a package");
    assert!(manifest.contains("[[bin]]\nname = \"setun-batch\""), "{manifest}");
}

#[test]
fn a_command_that_cannot_be_started_is_named() {
    let place = Place::new().with("bin", "no program");
    let file = place.path("bin/setun-batch");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("its owner");
    let output = place.run(&["sql"]);
    let words = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains(&format!("cannot start `{}`", file.display())), "{words}");
}

#[test]
fn exit_statuses_and_streams_are_those_of_the_command() {
    let script = "#!/bin/sh\ncat\necho words >&2\nexit $1\n";
    let place = Place::new().with("bin", script);
    for status in ["0", "1", "2", "130"] {
        let input = place.path("input");
        fs::write(&input, "read").expect("a file");
        let input = fs::File::open(input).expect("it is there");
        let output = place.command(&["batch", status]).stdin(input).output().expect("its output");
        assert_eq!(output.status.code(), status.parse().ok());
        assert_eq!((&*output.stdout, &*output.stderr), (&b"read"[..], &b"words\n"[..]));
    }
}

/// The process is the command's: a signal to it reaches the command, whose end is its own.
#[test]
fn signals_reach_the_command() {
    let traps = "#!/bin/sh\ntrap 'exit 42' INT TERM HUP\necho $$\nwhile :; do :; done\n";
    let place = Place::new().with("bin", traps);
    for (signal, _) in statuses() {
        let mut child =
            place.command(&["batch", "run"]).stdout(Stdio::piped()).spawn().expect("it runs");
        let mut stdout = child.stdout.take().expect("a pipe");
        let mut line = vec![];
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            stdout.read_exact(&mut byte).expect("its process");
            line.extend(byte);
        }
        assert_eq!(line, format!("{}\n", child.id()).as_bytes());
        send(signal, &child);
        assert_eq!(child.wait().expect("its end").code(), Some(42), "{signal}");
    }
}

#[test]
fn help_lists_the_subcommands() {
    let help = setun(&["--help"]).text();
    assert_eq!(setun(&["help"]).text(), help);
    for subcommand in ["sql", "batch"] {
        let is_line = |line: &str| line.trim_start().starts_with(&format!("{subcommand} "));
        assert!(help.lines().any(is_line), "{help}");
        let about = setun(&["help", subcommand]).text();
        assert!(about.contains("cargo install --locked --path batch/setun-batch"), "{about}");
    }
}

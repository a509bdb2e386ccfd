//! Running the command.

use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
};

use serde_json::Value;

/// A small model with random weights, without a tokenizer.
pub(crate) const TINY: &str = "bitnet-h64/packed";

/// A small model that tells stories.
pub(crate) const STORIES: &str = "real-tinystories-1m";

/// How stories begin.
pub(crate) const PROMPT: &str = "Once upon a time";

/// What a command left.
pub(crate) struct Outcome {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Standard output of a command that succeeded without a word on standard error.
    #[track_caller]
    pub(crate) fn text(self) -> String {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        assert_eq!(self.stderr, "");
        self.stdout
    }

    /// Standard output of a command that succeeded with these words on standard error.
    #[track_caller]
    pub(crate) fn text_with(self, words: &str) -> String {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        assert!(self.stderr.contains(words), "{}", self.stderr);
        self.stdout
    }

    /// Lines of JSON.
    #[track_caller]
    pub(crate) fn lines(self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The last line of JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        self.lines().pop().expect("a line")
    }

    /// Wrong usage, in these words.
    #[track_caller]
    pub(crate) fn wrong_usage(self, words: &str) {
        assert_eq!((self.status, &*self.stdout), (Some(2), ""), "{}", self.stderr);
        assert!(self.stderr.contains(words), "{words:?} in {}", self.stderr);
    }

    /// The one line of a command that failed with this status.
    #[track_caller]
    pub(crate) fn failure(self) -> String {
        assert_eq!(self.status, Some(1), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        self.stderr
    }
}

/// A model among the fixtures.
pub(crate) fn model(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/golden").join(name);
    assert!(path.is_dir(), "{} is not there", path.display());
    path.to_string_lossy().into_owned()
}

/// The command, with nothing to read.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(crate::PROGRAM);
    command.env_remove("RUST_LOG");
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Tells a story that begins with [`PROMPT`].
pub(crate) fn story(args: &[&str], more: &[&str]) -> Outcome {
    setun(&[&["run", "--model", &model(STORIES)], args, more, &[PROMPT]].concat())
}

/// Runs the command to its end.
pub(crate) fn setun(args: &[&str]) -> Outcome {
    setun_reading(args, b"")
}

/// Runs the command to its end, with something to read.
pub(crate) fn setun_reading(args: &[&str], input: &[u8]) -> Outcome {
    let mut child = command(args).stdin(Stdio::piped()).spawn().expect("the command is built");
    // A command that reads nothing may be gone by now.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("its output");
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Copies a model's folder without some of its files.
pub(crate) fn copy_without(name: &str, missing: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(model(name)).expect("the model") {
        let path = entry.expect("a file").path();
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !file.starts_with("golden") && !missing.contains(&file.as_str()) {
            fs::copy(&path, folder.path().join(file)).expect("a copy");
        }
    }
    let path = folder.path().to_owned();
    (folder, path)
}

/// A port for another process. Systems give out higher ones, so no other test is given it meanwhile.
pub(crate) fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let first = 15_000 + (process::id() % 1000) as u16 * 16;
    loop {
        let port = first + TAKEN.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// The part of a run after which a process is killed in this round: drawn, spread over all of it.
#[cfg(unix)]
pub(crate) fn drawn_share(round: u32) -> f64 {
    let draw = (crate::seed::seed() ^ u64::from(round)).wrapping_mul(0x9E37_79B9) % 1000;
    f64::from(u16::try_from(draw).expect("it is small")) / 1000.0
}

/// The story model with a chat template of a few words.
pub(crate) fn with_chat_template() -> (tempfile::TempDir, String) {
    with_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
}

/// The story model with this chat template.
pub(crate) fn with_template(template: &str) -> (tempfile::TempDir, String) {
    let (keep, folder) = copy_without(STORIES, &["tokenizer_config.json"]);
    let config = serde_json::json!({ "bos_token": "<s>", "chat_template": template });
    fs::write(folder.join("tokenizer_config.json"), config.to_string()).expect("a file");
    (keep, folder.to_string_lossy().into_owned())
}

/// Signals that end a process, and the statuses that shells have for them.
#[cfg(unix)]
const STATUSES: [(&str, i32); 3] = [("-INT", 130), ("-TERM", 143), ("-HUP", 129)];

/// Signals that a child of this process does not ignore, with their statuses: under `nohup` it ignores SIGHUP.
#[cfg(unix)]
pub(crate) fn statuses() -> Vec<(&'static str, i32)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // Bit n of the mask is signal n + 1, and a shell's status 128 more than the signal.
    STATUSES.into_iter().filter(|(_, status)| mask >> (status - 129) & 1 == 0).collect()
}

#[cfg(unix)]
pub(crate) fn send(signal: &str, child: &process::Child) {
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(kill.expect("kill").success());
}

//! Time in tests: none sleeps or reads a clock but those listed, so that no verdict hangs on the speed of a
//! machine. CONTRIBUTING.md says how to wait instead.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Findings;
use crate::files::read;

/// Words that read a clock or let time pass, by the ends of files' names. Written in two halves, so that this file
/// is no finding of its own.
const TIMES: [(&[&str], &[[&str; 2]]); 2] = [
    (&["rs"], &[["sle", "ep("], ["Instant::", "now"], ["SystemTime::", "now"], [".elap", "sed("]]),
    (
        &["ts", "js", "mjs"],
        &[["setTime", "out("], ["setInter", "val("], ["performance.", "now("], ["Date.", "now("]],
    ),
];

/// Files, or folders, that may, and why.
const ALLOWED: [(&str, &str); 25] = [
    ("batch/", CLUSTERS),
    ("crates/setun-cli/tests/cli/models/together.rs", KILLS),
    ("crates/setun-cli/tests/cli/processes/kills.rs", KILLS),
    ("crates/setun-cli/tests/cli/serve/ends.rs", "the server's process gives up after two seconds"),
    ("crates/setun-cli/tests/cli/serve/replicas/replay.rs", "sends a trace at its times"),
    ("crates/setun-cpu/src/team/mod.rs", "a member leaves about when its leader falls asleep"),
    ("crates/setun-cpu/src/team/rendezvous.rs", "turns a hang into a failure"),
    ("crates/setun-engine/src/engine/chat_prompt/tests.rs", "the date that a template reads"),
    ("crates/setun-hub/tests/hub/server.rs", "a server that is slow where a test asks for it"),
    ("tests/support/wait.rs", "waits for other processes, for minutes"),
    ("tests/tests/soak/main.rs", "as many minutes as it is told"),
    ("npm/browser-tests/shared-tabs.js", "reports how long a test that hangs has hung"),
    ("npm/browser-tests/soak.test.js", "as many minutes as it is told"),
    ("npm/browser-tests/start.test.js", "reports times and compares none"),
    ("npm/browser-tests/store.test.js", PAGE),
    ("npm/browser-tests/tabs.test.js", "a page that is idle is to be busy"),
    ("npm/packaging-tests/extension.test.js", "a browser ends a service worker that is idle"),
    ("npm/test-support/faulty-server.js", "what is sent arrives before the connection breaks"),
    ("npm/test-support/project.js", PAGE),
    ("npm/test-support/random-requests.js", "cancels at moments that are drawn"),
    ("npm/test-support/webkit.js", PAGE),
    ("npm/tests/download/broken-connections.test.ts", "sees which wait is asked for"),
    ("web/tests/chat.test.mjs", "turns a hang into a failure"),
    ("web/tests/preview.mjs", PAGE),
    ("web/tests/server.test.mjs", "presses a button until it is gone"),
];

const CLUSTERS: &str = "processes of queries and clusters, some of them killed at work";
const KILLS: &str = "kills a process at moments that are drawn";
const PAGE: &str = "looks again until another process or page is ready";

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let mut findings = Findings::new();
    for file in files.iter().filter(|file| !is_allowed(file)) {
        let Some(times) = times(file) else { continue };
        let is_test = is_test(file);
        if !is_test && file.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let text = read(file)?;
        let (before, tests) = if is_test { ("", &*text) } else { split_at_tests(&text) };
        findings.extend(found(file, before.lines().count(), tests, times));
    }
    Ok(findings)
}

fn is_allowed(file: &Path) -> bool {
    let path = file.to_string_lossy();
    ALLOWED.iter().any(|(allowed, _)| path.starts_with(allowed))
}

/// The words that a file must not have; `None` if it has no tests.
fn times(file: &Path) -> Option<&'static [[&'static str; 2]]> {
    let end = file.extension()?.to_str()?;
    let (_, times) = TIMES.iter().find(|(ends, _)| ends.contains(&end))?;
    Some(times)
}

/// Whether all of a file is tests, or what they alone use.
fn is_test(file: &Path) -> bool {
    let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let of_folder =
        |part: &str| part == "test-support" || part == "tests" || part.ends_with("-tests");
    let is_of_npm = Path::new(name).extension().is_some_and(|end| end == "test"); // `a.test.ts`
    let is_named = name == "tests" || name.ends_with("_tests") || is_of_npm;
    let mut folders = file.parent().into_iter().flat_map(Path::components);
    is_named
        || ["test_support", "fake_model"].contains(&name)
        || folders.any(|part| {
            part.as_os_str()
                .to_str()
                .is_some_and(|part| of_folder(part) || part.ends_with("_tests"))
        })
}

/// A source before its tests, and they.
fn split_at_tests(text: &str) -> (&str, &str) {
    let begin = ["mod tests {", "mod tests{"].iter().find_map(|begin| text.find(begin));
    text.split_at(begin.unwrap_or(text.len()))
}

fn found(file: &Path, before: usize, text: &str, times: &[[&str; 2]]) -> Findings {
    let hits =
        |line: &&str| times.iter().map(|halves| halves.concat()).find(|time| line.contains(time));
    let lines = text.lines().enumerate();
    let finding = |(number, line): (usize, &str)| {
        let time = hits(&line)?;
        let (file, number) = (file.display(), before + number + 1);
        Some(format!("{file}:{number} has `{time}`: wait for what comes, or move a clock"))
    };
    lines.filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(file: &str, text: &str) -> Findings {
        let file = Path::new(file);
        found(file, 0, text, times(file).unwrap_or_default())
    }

    #[test]
    fn what_lets_time_pass_is_found_with_its_line() {
        let text = format!("fn a() {{\n    thread::{}ONE);\n}}\n", TIMES[0].1[0].concat());
        let time = TIMES[0].1[0].concat();
        let expected = format!("a.rs:2 has `{time}`: wait for what comes, or move a clock");
        assert_eq!(findings("a.rs", &text), [expected]);
        assert!(findings("a.rs", "clock.advance(ONE); let now: Instant = clock.now();").is_empty());
        let script = format!("const begun = {});", TIMES[1].1[3].concat());
        assert_eq!(findings("a.test.ts", &script).len(), 1);
        assert!(findings("a.rs", &script).is_empty() && findings("a.py", &script).is_empty());
    }

    #[test]
    fn tests_are_known_by_their_places() {
        let tests = [
            "crates/a/tests/b.rs",
            "crates/a/src/b/tests.rs",
            "crates/a/src/b_tests.rs",
            "crates/a/src/b_tests/c.rs",
            "crates/a/src/scheduler/test_support.rs",
            "npm/browser-tests/a.js",
            "npm/test-support/a.js",
            "npm/src/a.test.ts",
        ];
        assert!(tests.iter().all(|file| is_test(Path::new(file))));
        let others = ["crates/a/src/b.rs", "xtask/src/test/stage.rs", "npm/src/a.ts"];
        assert!(!others.iter().any(|file| is_test(Path::new(file))));
        let (before, tests) = split_at_tests("fn a() {}\n#[cfg(test)]\nmod tests {\n}\n");
        assert_eq!((before.lines().count(), tests), (2, "mod tests {\n}\n"));
        assert_eq!(split_at_tests("fn a() {}\n").1, "");
    }

    #[test]
    fn those_that_may_are_listed_with_a_reason() {
        assert!(is_allowed(Path::new("tests/support/wait.rs")));
        assert!(!is_allowed(Path::new("tests/support/memory.rs")));
        assert!(ALLOWED.iter().all(|(_, reason)| reason.len() > 10));
    }
}

//! Excerpts of the logs of failed stages, shown last: of a long output often only the end is kept.

use std::collections::VecDeque;
use std::io::BufRead;

/// Lines of an excerpt.
const LINES: usize = 80;

/// What a log says of its failures: the messages of cargo's failed tests, or its last lines where it has none.
pub(super) fn excerpt(log: impl BufRead) -> String {
    let (mut messages, mut last) = (vec![], VecDeque::with_capacity(LINES));
    let mut is_message = false;
    for line in log.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        is_message = match line.as_str() {
            "failures:" => true,
            line if line.starts_with("test result: ") => false,
            _ => is_message,
        };
        if is_message && messages.len() < LINES && !line.is_empty() {
            messages.push(line.clone());
        }
        if last.len() == LINES {
            last.pop_front();
        }
        last.push_back(line);
    }
    if messages.is_empty() { Vec::from(last).join("\n") } else { messages.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_of_cargo_are_taken_out_of_a_long_log() {
        let mut log = "test a ... FAILED\ntest b ... ok\n\nfailures:\n\n---- a stdout ----\n\
            thread 'a' panicked at x.rs:1:2:\nno\n\nfailures:\n    a\n\n\
            test result: FAILED. 1 passed; 1 failed\n"
            .to_owned();
        log.push_str(&"test c ... ok\n".repeat(2 * LINES));
        let expected =
            "failures:\n---- a stdout ----\nthread 'a' panicked at x.rs:1:2:\nno\nfailures:\n    a";
        assert_eq!(excerpt(log.as_bytes()), expected);
    }

    #[test]
    fn other_logs_are_shown_from_their_end() {
        let log: Vec<String> = (0..2 * LINES).map(|line| line.to_string()).collect();
        assert_eq!(excerpt(log.join("\n").as_bytes()), log[LINES..].join("\n"));
        assert_eq!(excerpt(&b""[..]), "");
    }
}

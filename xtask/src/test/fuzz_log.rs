//! Progress of a libFuzzer run, read from its log.

use std::fmt::Write as _;

use anyhow::Result;

/// How far a target has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Inputs that were tried.
    executions: u64,
    /// Edges of the control flow that an input has taken.
    coverage: u64,
    /// Inputs in the corpus, each with something of its own.
    inputs: u64,
    /// Inputs that were found in this run.
    new: u64,
}

impl Progress {
    /// From the lines of a run that ended well.
    pub(super) fn of_log(log: &str) -> Self {
        let last = log.lines().rev().find(|line| line.contains(" cov: ")).unwrap_or_default();
        let after = |text: &str, key: &str| {
            let (_, rest) = text.split_once(key)?;
            let digits = rest.trim_start().split(|letter: char| !letter.is_ascii_digit());
            digits.into_iter().next()?.parse().ok()
        };
        let statistic = |key: &str| log.lines().find_map(|line| after(line, key)).unwrap_or(0);
        Self {
            executions: statistic("stat::number_of_executed_units:"),
            coverage: after(last, " cov: ").unwrap_or(0),
            inputs: after(last, " corp: ").unwrap_or(0),
            new: statistic("stat::new_units_added:"),
        }
    }
}

/// The targets with what they did.
pub(super) fn table(ran: &[(&str, Result<Progress, String>)]) -> Result<String> {
    let mut text = format!(
        "\n{:14} {:>12} {:>9} {:>7} {:>6}\n",
        "fuzz target", "executions", "coverage", "inputs", "new"
    );
    for (name, outcome) in ran {
        match outcome {
            Ok(Progress { executions, coverage, inputs, new }) => {
                writeln!(text, "{name:14} {executions:12} {coverage:9} {inputs:7} {new:6}")?;
            }
            Err(_) => writeln!(text, "{name:14} FAILED")?,
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
        #2\tINITED cov: 97 ft: 98 corp: 1/1b exec/s: 0 rss: 48Mb\n\
        #524288\tpulse  cov: 310 ft: 1041 corp: 213/9Kb lim: 2611 exec/s: 104857 rss: 371Mb\n\
        #1290417\tDONE   cov: 333 ft: 1200 corp: 254/12Kb lim: 6389 exec/s: 61448 rss: 410Mb\n\
        Done 1290417 runs in 21 second(s)\n\
        stat::number_of_executed_units: 1290417\n\
        stat::average_exec_per_sec:     61448\n\
        stat::new_units_added:          611\n";

    #[test]
    fn the_last_line_counts() {
        let found = Progress::of_log(LOG);
        let expected = Progress { executions: 1_290_417, coverage: 333, inputs: 254, new: 611 };
        assert_eq!(found, expected);
        assert_eq!(Progress::of_log("nothing"), Progress::default());
    }

    #[test]
    fn each_target_has_a_line() {
        let ran = [("gguf", Ok(Progress::of_log(LOG))), ("onnx", Err("x".to_owned()))];
        let text = table(&ran).unwrap();
        assert!(text.contains("gguf                1290417       333     254    611\n"), "{text}");
        assert!(text.contains("onnx           FAILED\n"), "{text}");
    }
}

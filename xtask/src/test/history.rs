//! Which paths the last commits touched: a stage with inputs runs where they are among them.

use anyhow::Result;

use crate::shell::{output, program};

/// Commits that are looked at.
const COMMITS: usize = 60;

/// Precedes the short hash of a commit in what git prints.
const MARK: &str = "commit ";

/// The last commits, newest first, each with the paths that it touched. What is not committed comes before them.
pub(super) struct History {
    commits: Vec<Commit>,
    /// Fewer are here than there are.
    is_cut: bool,
}

struct Commit {
    name: String,
    paths: Vec<String>,
}

/// The decision to run a stage, with its reason.
#[derive(Debug, PartialEq)]
pub(super) enum Due {
    Yes(String),
    No(String),
}

impl History {
    /// The history of this checkout. Without git, or in a clone with too few commits, everything is due.
    pub(super) fn read() -> Self {
        Self::found().unwrap_or(Self { commits: vec![], is_cut: true })
    }

    fn found() -> Result<Self> {
        let git = |arguments: &[&str]| output(program("git").args(arguments));
        let (number, format) = (format!("-{COMMITS}"), format!("--format={MARK}%h"));
        let log = ["log", &number, "--name-only", "--no-renames", "--diff-merges=first-parent"];
        let mut commits = of_log(&git(&[&log[..], &[&format]].concat())?);
        let is_shallow = git(&["rev-parse", "--is-shallow-repository"])?.trim() == "true";
        let is_cut = is_shallow && commits.len() < COMMITS;
        let status = git(&["status", "--porcelain", "--no-renames"])?;
        let paths = status.lines().filter_map(|line| line.get(3..)).map(str::to_owned).collect();
        commits.insert(0, Commit { name: "a change without a commit".to_owned(), paths });
        Ok(Self { commits, is_cut })
    }

    /// Decides by the commits that touched a path which begins with one of `inputs`.
    pub(super) fn due(&self, inputs: &[&str]) -> Due {
        if self.is_cut {
            return Due::Yes(format!("the clone has fewer than {COMMITS} commits"));
        }
        let is_input = |path: &&String| inputs.iter().any(|input| path.starts_with(input));
        let touched = self.commits.iter().find_map(|commit| {
            let path = commit.paths.iter().find(is_input)?;
            Some(format!("{} touched {path}", commit.name))
        });
        match touched {
            Some(why) => Due::Yes(why),
            None => {
                Due::No(format!("none of the last {COMMITS} commits touched {}", inputs.join(", ")))
            }
        }
    }
}

fn of_log(log: &str) -> Vec<Commit> {
    let mut commits: Vec<Commit> = vec![];
    for line in log.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix(MARK) {
            commits.push(Commit { name: name.to_owned(), paths: vec![] });
        } else if let Some(commit) = commits.last_mut() {
            commit.paths.push(line.to_owned());
        }
    }
    commits
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "commit aaa\n\nREADME.md\ncommit bbb\n\ndeploy/nginx.conf\nREADME.md\n";

    #[test]
    fn a_stage_is_due_by_the_newest_commit_that_touched_an_input() {
        let history = History { commits: of_log(LOG), is_cut: false };
        let yes = |why: &str| Due::Yes(why.to_owned());
        assert_eq!(history.due(&["deploy/"]), yes("bbb touched deploy/nginx.conf"));
        assert_eq!(history.due(&["deploy/", "README.md"]), yes("aaa touched README.md"));
        let no = "none of the last 60 commits touched npm/, python/";
        assert_eq!(history.due(&["npm/", "python/"]), Due::No(no.to_owned()));
    }

    #[test]
    fn all_is_due_where_the_history_is_not_known() {
        let history = History { commits: of_log(LOG), is_cut: true };
        let why = "the clone has fewer than 60 commits";
        assert_eq!(history.due(&["python/"]), Due::Yes(why.to_owned()));
    }
}

//! Which paths the last commits touched: a stage with inputs runs where they are among them.

use anyhow::Result;

use crate::shell::{output, program};

/// Commits that are looked at.
const COMMITS: usize = 60;

/// The last commits, newest first, each as lines: its name, and the paths that it touched. What is not committed
/// comes before them. There is none without git, or in a clone with fewer commits than are looked at.
pub(super) struct History(Option<Vec<String>>);

impl History {
    /// The history of this checkout.
    pub(super) fn read() -> Self {
        Self(Self::found().ok().flatten())
    }

    fn found() -> Result<Option<Vec<String>>> {
        let git = |arguments: &[&str]| output(program("git").args(arguments));
        let (number, first_parent) = (format!("-{COMMITS}"), "--diff-merges=first-parent");
        let log = ["log", &number, "--name-only", "--no-renames", first_parent, "--format=%x00%h"];
        let log = git(&log)?;
        let status = git(&["status", "--porcelain", "--no-renames"])?;
        let paths: Vec<&str> = status.lines().filter_map(|line| line.get(3..)).collect();
        let all = format!("a change without a commit\n{}{log}", paths.join("\n"));
        let commits: Vec<String> = all.split('\0').map(str::to_owned).collect();
        let is_shallow = git(&["rev-parse", "--is-shallow-repository"])?.trim() == "true";
        Ok(Some(commits).filter(|commits| !is_shallow || commits.len() > COMMITS))
    }

    /// Which commit touched a path that begins with one of `inputs`, or that there is none, as an error.
    pub(super) fn due(&self, inputs: &[&str]) -> Result<String, String> {
        let Some(commits) = &self.0 else {
            return Ok(format!("the clone has fewer than {COMMITS} commits"));
        };
        let touched = commits.iter().find_map(|commit| {
            let (name, paths) = commit.split_once('\n')?;
            let mut paths = paths.lines();
            let path = paths.find(|path| inputs.iter().any(|input| path.starts_with(input)))?;
            Some(format!("{name} touched {path}"))
        });
        touched.ok_or_else(|| {
            format!("none of the last {COMMITS} commits touched {}", inputs.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_due_by_the_newest_commit_that_touched_an_input() {
        let commits = ["aaa\n\nREADME.md\n", "bbb\n\ndeploy/nginx.conf\nREADME.md\n"];
        let history = History(Some(commits.map(str::to_owned).into()));
        let due = |inputs: &[&str]| history.due(inputs);
        assert_eq!(due(&["deploy/"]).unwrap(), "bbb touched deploy/nginx.conf");
        assert_eq!(due(&["deploy/", "README.md"]).unwrap(), "aaa touched README.md");
        let no = "none of the last 60 commits touched npm/, python/";
        assert_eq!(due(&["npm/", "python/"]).unwrap_err(), no);
        let not_known = History(None).due(&["python/"]).unwrap();
        assert_eq!(not_known, "the clone has fewer than 60 commits");
    }
}

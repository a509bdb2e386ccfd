//! Workflows of the forge: actions by commit, few permissions, provenance of everything published.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Findings;
use crate::files::read;

/// What a workflow may do before a job asks for more.
const PERMISSIONS: &str = "\npermissions:\n  contents: read\n\n";

/// Words of a job, and the permissions that it then needs.
const NEEDS: [(&str, &[&str]); 3] = [
    ("attest-build-provenance@", &["id-token: write", "attestations: write"]),
    ("crates-io-auth-action@", &["id-token: write"]),
    ("npm publish", &["id-token: write"]),
];

/// Words of a step, and what it must say beside them.
const SAYS: [(&str, &str); 3] = [
    ("npm publish", "--provenance"),
    ("cargo publish", "--locked"),
    ("actions/checkout@", "persist-credentials: false"),
];

pub(super) fn check(files: &[PathBuf]) -> Result<Findings> {
    let mut findings = Findings::new();
    for file in files.iter().filter(|file| file.starts_with(".github/workflows")) {
        findings.extend(of_workflow(file, &read(file)?));
    }
    Ok(findings)
}

fn of_workflow(file: &Path, text: &str) -> Findings {
    let mut findings = Findings::new();
    let name = file.display();
    if !text.contains(PERMISSIONS) {
        findings.push(format!("{name}: it must begin with `contents: read` alone"));
    }
    for (at, line) in text.lines().enumerate() {
        let action = line.trim().trim_start_matches("- ").strip_prefix("uses: ");
        if action.is_some_and(|action| !is_pinned(action)) {
            findings.push(format!("{name}:{}: not by commit and version: {}", at + 1, line.trim()));
        }
    }
    for (job, lines) in jobs(text) {
        for (word, needed) in NEEDS.iter().filter(|(word, _)| lines.contains(word)) {
            let lacking = needed.iter().filter(|permission| !lines.contains(*permission));
            findings.extend(lacking.map(|it| format!("{name}: {job} has {word} without {it}")));
        }
        for step in lines.split("\n      - ") {
            let silent =
                SAYS.iter().filter(|(word, also)| step.contains(word) && !step.contains(also));
            findings.extend(
                silent.map(|(word, also)| format!("{name}: {job} has {word} without {also}")),
            );
        }
    }
    findings
}

/// `OWNER/NAME@COMMIT # vVERSION`
fn is_pinned(action: &str) -> bool {
    let Some((action, version)) = action.split_once(" # v") else { return false };
    let commit = action.split_once('@').map_or("", |(_, commit)| commit);
    let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit && version.starts_with(|it: char| it.is_ascii_digit())
}

/// The jobs of a workflow, each with its lines. A job's name is indented by two spaces.
fn jobs(text: &str) -> Vec<(&str, String)> {
    let mut jobs: Vec<(&str, String)> = vec![];
    for line in text.split_once("\njobs:\n").map_or("", |(_, jobs)| jobs).lines() {
        let name = line.strip_prefix("  ").and_then(|line| line.strip_suffix(':'));
        match name.filter(|name| !name.starts_with([' ', '#'])) {
            Some(name) => jobs.push((name, String::new())),
            None => {
                if let Some((_, lines)) = jobs.last_mut() {
                    lines.push('\n');
                    lines.push_str(line);
                }
            }
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "3d3c42e5aac5ba805825da76410c181273ba90b1";

    fn found(jobs: &str) -> Findings {
        of_workflow(Path::new("a.yml"), &format!("name: A\n{PERMISSIONS}jobs:\n{jobs}"))
    }

    #[test]
    fn an_action_has_a_commit_and_a_version() {
        assert!(is_pinned(&format!("actions/setup-node@{COMMIT} # v7.0.0")));
        assert!(!is_pinned(&format!("actions/setup-node@{COMMIT}")));
        assert!(!is_pinned("actions/setup-node@v7 # v7.0.0"));
        let findings = found("  one:\n    steps:\n      - uses: actions/setup-node@v7\n");
        assert_eq!(findings, ["a.yml:9: not by commit and version: - uses: actions/setup-node@v7"]);
    }

    #[test]
    fn a_job_has_the_permissions_that_it_needs() {
        let steps = format!(
            "    steps:\n      - uses: actions/attest-build-provenance@{COMMIT} # v4.1.0\n"
        );
        let findings = found(&format!("  one:\n    permissions:\n      id-token: write\n{steps}"));
        assert_eq!(
            findings,
            ["a.yml: one has attest-build-provenance@ without attestations: write"]
        );
        let other = "  two:\n    permissions:\n      id-token: write\n      attestations: write\n";
        assert_eq!(
            found(&format!("{other}  one:\n{steps}")).len(),
            2,
            "another job's do not count"
        );
        assert!(found(&format!("{other}{steps}")).is_empty());
    }

    #[test]
    fn publishing_has_provenance() {
        let job = "  one:\n    permissions:\n      id-token: write\n    steps:\n      - name: Publish\n        run: npm publish";
        assert_eq!(found(job), ["a.yml: one has npm publish without --provenance"]);
        assert!(found(&format!("{job} --provenance\n")).is_empty());
    }

    #[test]
    fn a_workflow_may_read_alone() {
        let text = "name: A\n\npermissions: write-all\n\njobs:\n";
        assert_eq!(
            of_workflow(Path::new("a.yml"), text),
            ["a.yml: it must begin with `contents: read` alone"]
        );
    }
}

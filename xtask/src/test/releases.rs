//! Stages about what a release publishes: packages of crates, their interface, the bytes of the modules.

use anyhow::Result;

use super::stage::Stage;
use crate::crate_packages;
use crate::metadata::{BATCH, is_ours, is_published, metadata, packages};
use crate::reproduce;
use crate::shell::{cargo, find_program, output, program, run, say};

const TOOL: &str = "cargo-semver-checks";
const NO_TOOL: &str = "needs cargo-semver-checks: cargo install cargo-semver-checks --locked";

/// Every package as it would be uploaded; none is compiled.
pub(super) fn crate_packages() -> Stage {
    Stage::new("crate packages", |_| crate_packages::check(false))
}

/// The stages of `--long`.
pub(super) fn long_stages() -> Vec<Stage> {
    vec![
        Stage::new("crates compiled", |_| crate_packages::check(true)),
        semver(),
        Stage::new("reproduce", |totals| {
            totals.passed += reproduce::check()?;
            Ok(())
        }),
    ]
}

/// The public interfaces against those of the last release.
fn semver() -> Stage {
    let Some(release) = last_release() else {
        return Stage::new("semver", |_| {
            say("no release is tagged before this commit: there is nothing to compare with");
            Ok(())
        });
    };
    if find_program(TOOL).is_none() {
        return Stage::absent("semver", NO_TOOL);
    }
    Stage::new("semver", move |_| compare(&release))
}

/// The last tag of a release before this commit: the commit may itself be a release.
fn last_release() -> Option<String> {
    let mut command = program("git");
    command.args(["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"]);
    Some(output(&mut command).ok()?.trim().to_owned()).filter(|tag| !tag.is_empty())
}

fn compare(release: &str) -> Result<()> {
    say(&format!("public interfaces since {release}"));
    let metadata = metadata()?;
    let semver = ["semver-checks", "--workspace", "--baseline-rev", release];
    let mut command = cargo();
    command.args(semver);
    let hidden = packages(&metadata)?.iter().filter(|it| is_ours(it) && !is_published(it));
    command.args(hidden.flat_map(|it| ["--exclude", it["name"].as_str().unwrap_or_default()]));
    run(&mut command)?;
    run(cargo().args(semver).args(["--manifest-path", BATCH]))
}

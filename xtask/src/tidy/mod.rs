//! House rules, as far as a program can check them.

mod crate_order;
mod error_codes;
mod locks;
mod manifests;
mod model_card;
mod npm_locks;
mod numerics;
mod operations;
mod prose;
mod rings;
mod sources;
mod test_time;
mod workflows;

use anyhow::{Result, bail};

use crate::bindgen;
use crate::files::{read, tracked};
use crate::shell::say;

/// What a rule found: one line each, with the file.
type Findings = Vec<String>;

/// `cargo xtask tidy`.
pub(crate) fn run() -> Result<()> {
    let files = tracked()?;
    let rules: Vec<(&str, Findings)> = vec![
        ("layers", crate_order::check()?),
        ("one name for each operation", operations::check(&files)?),
        ("sources", sources::check(&files)?),
        ("time in tests", test_time::check(&files)?),
        ("float code", numerics::check(&files)?),
        ("error codes", error_codes::check()?),
        ("lock files", locks::check(&files)?),
        ("lock files of npm", npm_locks::check(&files)?),
        ("workflows", workflows::check(&files)?),
        ("manifests", manifests::check()?),
        ("the embedded model's card", model_card::check()?),
        ("rings", rings::check()?),
        ("prose", prose::check(&files)?),
    ];
    bindgen::same_version(&read("Cargo.lock")?, &read("xtask/bindgen/Cargo.lock")?)?;
    let mut count = 0;
    for (rule, findings) in rules {
        for finding in findings {
            println!("{rule}: {finding}");
            count += 1;
        }
    }
    if count > 0 {
        bail!("{count} lines break the house rules");
    }
    say("tidy");
    Ok(())
}

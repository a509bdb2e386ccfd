//! Manifests: what a registry shows of a package.

use anyhow::Result;

use super::Findings;
use crate::metadata::own_packages;

const FIELDS: [&str; 4] = ["description", "homepage", "license", "repository"];

pub(super) fn check() -> Result<Findings> {
    let mut findings = Findings::new();
    for package in own_packages()? {
        let missing = FIELDS.into_iter().filter(|field| !package[*field].is_string());
        findings.extend(missing.map(|field| format!("{} has no {field}", package["name"])));
    }
    Ok(findings)
}

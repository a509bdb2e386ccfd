//! Files of `deploy/`: manifests, configurations of proxies, and three servers behind `HAProxy`.

use std::process::Command;

use anyhow::Result;

use super::stage::{Stage, count, skip};
use super::totals::Totals;
use super::wheels::{self, python};
use crate::machine::{install_packages, may_install};
use crate::shell::{WORKSPACE_TESTS, cargo, find_program, program, root, run};

/// The Debian packages of the proxies.
const PROXIES: [&str; 2] = ["haproxy", "nginx"];

const NO_PROXIES: &str =
    "needs HAProxy and nginx on the PATH; on Debian, as root: apt-get install haproxy nginx";

/// Tests of the command that need `HAProxy`; the stage `processes` leaves them out.
pub(super) const REPLICAS: &str = "serve::replicas";

/// Where the wheel of Envoy has its program.
const ENVOY: &str = "envoy/_bin/envoy";

const INPUTS: [&str; 5] = [
    "deploy/",
    "xtask/deploy/",
    "crates/setun-cli/tests/cli/serve",
    "crates/setun-simulate/src/",
    "xtask/src/test/deploy.rs",
];

/// The stage.
pub(super) fn stage() -> Stage {
    if PROXIES.iter().any(|name| find_program(name).is_none()) && !may_install() {
        return Stage::absent("deploy", NO_PROXIES);
    }
    wheels::stage("deploy", test).for_changes_of(&INPUTS)
}

fn test(totals: &mut Totals) -> Result<()> {
    test_wheels(totals)?;
    if PROXIES.iter().any(|name| find_program(name).is_none()) {
        install_packages(&PROXIES)?;
    }
    check(program("haproxy").args(["-c", "-f", "deploy/haproxy.cfg"]), totals)?;
    check(program("nginx").arg("-t").arg("-c").arg(root().join("deploy/nginx.conf")), totals)?;
    let mut replicas = cargo();
    replicas.args(WORKSPACE_TESTS).args(["--test", "cli", "--"]);
    count(replicas.args(["--ignored", "--nocapture", "--test-threads", "1", REPLICAS]), totals)
}

/// Manifests and the configuration of Envoy, by packages of `PyPI`.
fn test_wheels(totals: &mut Totals) -> Result<()> {
    let folder = root().join("xtask/deploy");
    let Some(packages) = wheels::fetched("deploy", &folder.join("requirements.txt"))? else {
        return skip(2, "what checks manifests and Envoy's file cannot be had from PyPI", totals);
    };
    let mut manifests = python(&packages);
    count(manifests.arg(folder.join("manifests.py")).arg("deploy/kubernetes"), totals)?;
    let mut envoy = program(packages.join(ENVOY));
    check(envoy.args(["--mode", "validate", "-l", "warning", "-c", "deploy/envoy.yaml"]), totals)
}

/// A program that judges one file.
fn check(command: &mut Command, totals: &mut Totals) -> Result<()> {
    run(command)?;
    totals.passed += 1;
    Ok(())
}

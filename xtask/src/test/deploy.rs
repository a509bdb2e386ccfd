//! Files of `deploy/`: manifests, configurations of proxies, and three servers behind `HAProxy`.

use anyhow::Result;

use super::stage::Check;
use super::wheels::{self, python};
use super::workspace::cargo;
use crate::shell::{WORKSPACE_TESTS, find_program, program, root};

/// The programs and Debian packages of the proxies.
const PROXIES: [&str; 2] = ["haproxy", "nginx"];

/// Tests of the command that need `HAProxy`; the stage `processes` leaves them out.
pub(super) const REPLICAS: &str = "serve::replicas";

/// Where the wheel of Envoy has its program.
const ENVOY: &str = "envoy/_bin/envoy";

/// Wheels of the tests.
const REQUIREMENTS: &str = "xtask/deploy/requirements.txt";
const TESTS: (usize, &str) = (2, "what checks manifests and Envoy's file");

pub(super) const INPUTS: [&str; 5] = [
    "deploy/",
    "xtask/deploy/",
    "crates/setun-cli/tests/cli/serve",
    "crates/setun-simulate/src/",
    "xtask/src/test/deploy.rs",
];

pub(super) fn test(check: &mut Check) -> Result<()> {
    let has_proxies = PROXIES.iter().all(|name| find_program(name).is_some());
    check.needs_packages(has_proxies, "HAProxy and nginx on the PATH", &PROXIES)?;
    if let Some(packages) = wheels::of_stage(check, REQUIREMENTS, TESTS)? {
        let mut manifests = python(&packages);
        check.count(manifests.args(["xtask/deploy/manifests.py", "deploy/kubernetes"]))?;
        let mut envoy = program(packages.join(ENVOY));
        check.pass(envoy.args([
            "--mode",
            "validate",
            "-l",
            "warning",
            "-c",
            "deploy/envoy.yaml",
        ]))?;
    }
    check.pass(program("haproxy").args(["-c", "-f", "deploy/haproxy.cfg"]))?;
    check.pass(program("nginx").arg("-t").arg("-c").arg(root().join("deploy/nginx.conf")))?;
    let mut replicas = cargo(&WORKSPACE_TESTS.join(" "));
    replicas.args(["--test", "cli", "--", "--ignored", "--nocapture", "--test-threads", "1"]);
    check.count(replicas.arg(REPLICAS))
}

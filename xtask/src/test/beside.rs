//! Stages that run in processes of their own beside the others: a linker, a browser or a download leaves a
//! processor free.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::stage::{Finished, Outcome};
use super::totals::Totals;
use crate::shell::{root, say, target};

/// Stages of the processes that run beside the first, divided so that all take about equally long. They share no
/// program with those that run meanwhile, but for browsers. Those of the first list build into folders of their
/// own. So do those of the second, or they only check what others build: cargo lets them wait where it must.
pub(super) const FIRST: [&[&str]; 2] = [
    &["binding tool", "npm check", "npm test", "package", "npm test:packaging", "npm test:browser"],
    &[
        "dependencies",
        "crate packages",
        "fuzz",
        "neon",
        "systems",
        "features",
        "documentation",
        "kernels",
    ],
];

/// Those of the process at last, beside the demo page.
pub(super) const LAST: [&[&str]; 1] = [&["cuda", "shaders"]];

/// Stages under way in a process of their own.
pub(super) struct Beside {
    process: Child,
    names: Vec<String>,
    log: PathBuf,
    results: PathBuf,
}

impl Beside {
    /// Starts the stages of these names in process `number` of a list.
    pub(super) fn start(number: usize, names: Vec<String>) -> Result<Self> {
        let folder = target().join("xtask");
        fs::create_dir_all(&folder)?;
        let (log, results) = (
            folder.join(format!("beside-{number}.log")),
            folder.join(format!("beside-{number}.json")),
        );
        if results.exists() {
            fs::remove_file(&results)?;
        }
        say(&format!("=== beside the next stages: {}", names.join(", ")));
        let output = File::create(&log)?;
        let process = Command::new(std::env::current_exe()?)
            .current_dir(root())
            .args(["test", "--only", &names.join(","), "--results"])
            .arg(&results)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot start the stages beside the others")?;
        Ok(Self { process, names, log, results })
    }

    /// Waits for them, shows what they printed, and returns how they ended.
    pub(super) fn finish(mut self) -> Result<Vec<Finished>> {
        self.process.wait()?;
        io::copy(&mut File::open(&self.log)?, &mut io::stderr())?;
        let mut finished = read_results(&self.results).unwrap_or_default();
        for name in self.names {
            if finished.iter().all(|stage| stage.name != name) {
                let outcome = Outcome::Failed("its process ended without a result".to_owned());
                let (totals, time) = (Totals::default(), Duration::ZERO);
                finished.push(Finished { name, outcome, totals, time, cpu_time: None });
            }
        }
        Ok(finished)
    }
}

/// Writes how stages ended, for the process that started this one.
pub(super) fn write_results(to: &Path, finished: &[Finished]) -> Result<()> {
    Ok(fs::write(to, serde_json::to_vec(finished)?)?)
}

fn read_results(from: &Path) -> Result<Vec<Finished>> {
    Ok(serde_json::from_slice(&fs::read(from)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::stages;

    #[test]
    fn every_process_has_stages_that_exist() {
        let stages = stages::all(false, None).unwrap();
        let exists = |name: &&str| stages.iter().any(|stage| stage.name == **name);
        let names = [FIRST.concat(), LAST.concat()].concat();
        // Another processor runs the kernels of the stage `neon` itself.
        let absent: Vec<_> = names.iter().filter(|name| !exists(name)).collect();
        assert!(absent.iter().all(|name| **name == "neon"), "{absent:?}");
    }

    #[test]
    fn another_process_learns_how_stages_ended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("results.json");
        let stage = |name: &str, outcome| Finished {
            name: name.to_owned(),
            outcome,
            totals: Totals { passed: 3, failed: 1, skipped: 2 },
            time: Duration::from_millis(1500),
            cpu_time: None,
        };
        let stages = [
            stage("package", Outcome::Passed),
            stage("kernels", Outcome::Failed("x".into())),
            stage("npm test", Outcome::Absent("y".into())),
        ];
        write_results(&file, &stages).unwrap();
        let read = read_results(&file).unwrap();
        assert!(matches!(read[0].outcome, Outcome::Passed));
        assert!(matches!(&read[1].outcome, Outcome::Failed(why) if why == "x"));
        assert!(matches!(&read[2].outcome, Outcome::Absent(why) if why == "y"));
        assert_eq!((read[0].totals, read[0].time), (stages[0].totals, stages[0].time));
    }
}

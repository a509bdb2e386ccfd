//! `--profile` and `--trace` of a command that generates.

use std::path::{Path, PathBuf};

use setun::{Engine, Timeline};

use super::{ProfileReport, untimed};
use crate::{
    destination::{check_export, export},
    error::CliError,
    output::report,
};

/// Options of the time of steps.
#[derive(clap::Args, Debug)]
pub(in crate::commands) struct TimingArgs {
    /// Time each operation, and report on standard error where the time went
    #[arg(long)]
    profile: bool,

    /// Time each operation, and write a trace in the format of Chrome and Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Overwrite the file of --trace if it is there already
    #[arg(long, requires = "trace")]
    force: bool,
}

impl TimingArgs {
    /// Whether a trace could be written, before the work of loading.
    pub(in crate::commands) fn check(&self) -> Result<(), CliError> {
        self.trace.as_deref().map_or(Ok(()), |path| check_export(path, self.force))
    }

    /// Has the engine time its steps from now on, if that was requested.
    pub(in crate::commands) fn begin(&self, engine: &Engine) -> Result<(), CliError> {
        if self.trace.is_some() {
            pollster::block_on(engine.start_timeline())?;
        } else if self.profile {
            pollster::block_on(engine.start_profile())?;
        }
        Ok(())
    }

    /// Reports where the time went.
    pub(in crate::commands) fn end(&self, engine: &Engine) -> Result<(), CliError> {
        if !self.profile && self.trace.is_none() {
            return Ok(());
        }
        let profile = pollster::block_on(engine.end_profile())?;
        let profile = profile.ok_or_else(|| untimed(engine.level()))?;
        if self.profile {
            report(&format!("{}\n", ProfileReport::of(&profile).tables()));
        }
        self.trace.as_deref().map_or(Ok(()), |path| self.write(&profile.timeline, path))
    }

    fn write(&self, timeline: &Timeline, path: &Path) -> Result<(), CliError> {
        let failed = |source| CliError::Write { path: path.to_owned(), source };
        export(path, self.force, |file| timeline.write_chrome(file).map_err(failed))
    }
}

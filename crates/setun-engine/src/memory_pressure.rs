//! Memory pressure, and the monitors that signal it.

use std::sync::{Arc, Mutex};

use setun_model::MaybeSend;

/// How short memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pressure {
    /// What only saves time is given back: what is kept of prompts, and what nobody uses.
    Moderate,
    /// So is the memory of generations that nobody reads, and what a draft knows of texts.
    Critical,
}

/// Tells how short memory is, when asked between steps: a signal of the system, a limit of one's
/// own. Closures that return such are watches, too.
pub trait MemoryMonitor: MaybeSend {
    /// None where there is enough. It is not to wait for anything.
    fn pressure(&mut self) -> Option<Pressure>;
}

impl<F: FnMut() -> Option<Pressure> + MaybeSend> MemoryMonitor for F {
    fn pressure(&mut self) -> Option<Pressure> {
        self()
    }
}

/// The schedulers of an engine ask the same.
pub type SharedMonitor = Arc<Mutex<Box<dyn MemoryMonitor>>>;

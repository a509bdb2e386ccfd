//! Memory pressure, and the monitors that signal it.

use std::sync::{Arc, Mutex};

use setun_model::MaybeSend;

/// How short memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pressure {
    /// What only saves time is given back: the prefix cache, and unused memory.
    Moderate,
    /// Also the memory of generations that nobody reads, and the draft model's cache.
    Critical,
}

/// Reports how short memory is, between steps: by a signal of the system, or by a limit of the
/// caller. A closure that returns a pressure is a monitor, too.
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

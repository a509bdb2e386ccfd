//! Memory, threads and descriptors of a process.

use std::{
    fmt::{self, Display, Formatter},
    fs,
};

use crate::{memory::live, wait::comes};

/// Bytes by which memory may differ: lists keep the room that they once needed.
const SLACK: usize = 1 << 16;

/// Name of an engine's thread of masks.
const MASKS: &str = "setun-masks";

/// What is in use.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    bytes: usize,
    threads: usize,
    descriptors: usize,
}

impl Usage {
    /// Threads and descriptors are known on Linux alone.
    pub(crate) fn now() -> Self {
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self { bytes: live(), threads: threads(), descriptors }
    }

    /// Compares with what was in use at the start. A thread that has been joined is there for a
    /// moment yet.
    ///
    /// # Panics
    ///
    /// If more is in use.
    pub(crate) fn assert_is(mut self, start: &Self, when: &str) {
        comes(|| {
            self = Self::now();
            self.threads <= start.threads
        });
        let is_held = self.bytes <= start.bytes + SLACK
            && self.threads <= start.threads
            && self.descriptors <= start.descriptors;
        assert!(is_held, "{when}: {self} {:?}, at the start {start}", thread_names());
    }
}

/// The thread of masks, which starts with the first mask that can be computed beside a step, counts
/// before that as well.
fn threads() -> usize {
    let names = thread_names();
    let masks = names.iter().filter(|name| name.trim() == MASKS).count();
    names.len() - masks + masks.max(1)
}

fn thread_names() -> Vec<String> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok()).collect()
}

impl Display for Usage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { bytes, threads, descriptors } = self;
        write!(f, "{bytes} bytes, {threads} threads, {descriptors} descriptors")
    }
}

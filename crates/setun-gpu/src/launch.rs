//! Launches: a plan as a list of kernels with their arguments and grids.

use setun_ops::{BufferId, WeightId};

use crate::kernel::Kernel;

/// One kernel over some memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Index of the operation in the plan.
    pub op: usize,
    /// What runs.
    pub kernel: Kernel,
    /// The words of its `Shape`.
    pub shape: Vec<u32>,
    /// Its arguments, after the shape and the step's inputs.
    pub arguments: Vec<Argument>,
    /// Workgroups.
    pub grid: [u32; 3],
}

/// Memory that a launch names; a backend knows where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A buffer of the plan.
    Buffer(BufferId),
    /// Memory between two launches of one operation.
    Scratch(usize),
    /// A weight, or a part of a table.
    Weight(WeightId, usize),
    /// Keys of a layer of the cache.
    Keys(usize),
    /// Values of a layer of the cache.
    Values(usize),
    /// What a variant has no use for.
    Nothing,
}

/// A plan as launches, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launches {
    /// The launches.
    pub list: Vec<Launch>,
    /// Bytes of each piece of scratch memory.
    pub scratch: Vec<u64>,
}

impl Launches {
    /// The index of a piece of scratch memory of at least so many bytes.
    pub(crate) fn scratch(&mut self, index: usize, bytes: u64) -> Argument {
        if self.scratch.len() <= index {
            self.scratch.resize(index + 1, 0);
        }
        self.scratch[index] = self.scratch[index].max(bytes);
        Argument::Scratch(index)
    }
}

//! Launches: a plan as a list of kernels with their arguments and grids.

use setun_ops::{BatchInputs, BufferId, WeightId, numeric::to_u32};

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
    /// In which steps it takes part.
    pub when: When,
}

/// Positions of a chunk: attention to more of them is shared out, chunk by chunk.
pub const CHUNK_POSITIONS: u32 = 512;

/// The steps that a launch takes part in, by the chunks of positions of its longest sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// All.
    #[default]
    Always,
    /// Those of one chunk.
    OneChunk,
    /// Those of several chunks.
    Chunks,
    /// Those of several chunks, with a layer of workgroups for each: at most its grid's last
    /// number.
    EachChunk,
}

impl When {
    /// Layers of workgroups, of `most`, in a step of this many chunks: none if it takes no part.
    #[must_use]
    pub fn layers(self, most: u32, chunks: u32) -> u32 {
        match (self, chunks > 1) {
            (Self::Always, _) | (Self::OneChunk, false) | (Self::Chunks, true) => most,
            (Self::EachChunk, true) => most.min(chunks),
            (Self::OneChunk, true) | (Self::Chunks | Self::EachChunk, false) => 0,
        }
    }
}

/// Memory that a launch names; a backend knows where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A buffer of the plan.
    Buffer(BufferId),
    /// Memory between two launches of one operation.
    Scratch(Scratch),
    /// A weight, or a part of a table.
    Weight(WeightId, usize),
    /// Keys of a layer of the cache.
    Keys(usize),
    /// Values of a layer of the cache.
    Values(usize),
    /// Matrices of the recurrent states of a layer.
    Matrices(usize),
    /// History of the recurrent states of a layer.
    History(usize),
    /// What a variant has no use for.
    Nothing,
}

/// What lies between two launches of one operation; one operation after the other uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scratch {
    /// What chunks of positions come to.
    Chunks,
    /// Logits of all tokens.
    Logits,
    /// Tokens on their way to being ranked, or chosen.
    Sorting,
}

/// A plan as launches, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launches {
    /// The launches.
    pub list: Vec<Launch>,
    /// Bytes of scratch memory, of each kind.
    pub scratch: [u64; 3],
}

impl Launches {
    /// Scratch memory of at least this many bytes.
    pub(crate) fn scratch(&mut self, kind: Scratch, bytes: u64) -> Argument {
        let most = &mut self.scratch[kind as usize];
        *most = bytes.max(*most);
        Argument::Scratch(kind)
    }
}

/// The number of chunks of positions that attention is launched for: that of the longest sequence in the
/// last of some steps. Kernels skip the chunks that a row does not have.
pub(crate) fn chunks(inputs: &BatchInputs, steps: usize) -> u32 {
    let last = inputs.positions.iter().copied().max().unwrap_or(0) as usize + steps - 1;
    to_u32(last) / CHUNK_POSITIONS + 1
}

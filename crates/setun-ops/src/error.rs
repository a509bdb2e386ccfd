//! Errors of plans, weights and backends.

use crate::{
    cache_spec::CacheSpec,
    op::{BufferId, WeightId},
};

/// Why a weight, a plan or a step was refused, or why it could not be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpsError {
    /// A matrix has no columns, or too many for exact sums.
    #[error("a ternary matrix has {found} columns, expected 1 to {limit}")]
    Columns {
        /// Columns of the matrix.
        found: usize,
        /// Most that are possible.
        limit: usize,
    },

    /// A slice is longer or shorter than its shape says.
    #[error("{what}: expected {expected}, found {found}")]
    Length {
        /// What was counted.
        what: &'static str,
        /// How many the shape needs.
        expected: usize,
        /// How many there are.
        found: usize,
    },

    /// Two bits hold 3, which is no ternary code.
    #[error("row {row} is not ternary: a code is 3 in byte {byte} of its packed form")]
    Code {
        /// Row of the matrix.
        row: usize,
        /// Byte within the packed row.
        byte: usize,
    },

    /// A padding code is not 1.
    #[error("row {row} of a ternary matrix is not padded with code 1")]
    Padding {
        /// Row of the matrix.
        row: usize,
    },

    /// A value is not a finite number.
    #[error("{what} {index} is {found}, expected a finite number")]
    NotFinite {
        /// What it is: a scale, a frequency, a row.
        what: &'static str,
        /// Its index.
        index: usize,
        /// Its value.
        found: f32,
    },

    /// An int8 code that is never made.
    #[error("int8 code {index} is -128, expected -127 to 127")]
    Int8Code {
        /// Its index.
        index: usize,
    },

    /// A column group is not made of whole planes.
    #[error("column groups of {found}, expected a multiple of 32")]
    GroupColumns {
        /// Columns of a group.
        found: usize,
    },

    /// Matrices with and without column groups cannot be one.
    #[error("matrices with different column groups cannot be stacked")]
    MixedScales,

    /// A plan's op does not fit the weight or buffer it names.
    #[error("op {op} ({name}) of the plan: {what}")]
    Plan {
        /// Index of the op.
        op: usize,
        /// Its name.
        name: &'static str,
        /// What does not fit.
        what: String,
    },

    /// A weight is not what the plan says.
    #[error("weight {}: expected {expected}, found {found}", id.0)]
    Weight {
        /// The weight.
        id: WeightId,
        /// Kind and shape in the plan.
        expected: String,
        /// Kind and shape given.
        found: String,
    },

    /// The inputs of a step do not fit the plan or the cache.
    #[error("inputs of a step: {what}: expected {expected}, found {found}")]
    Inputs {
        /// Which input.
        what: &'static str,
        /// The bound it broke.
        expected: usize,
        /// What was given.
        found: usize,
    },

    /// A request for the best tokens says in no sensible way how near to the best they lie.
    #[error("inputs of a step: tokens within {found} of the best: expected 0 or more")]
    Within {
        /// What was given.
        found: f32,
    },

    /// A request for tokens by noisy scores has no temperature, or a distance beside it.
    #[error(
        "inputs of a step: tokens by noisy scores at a temperature of {found}: expected a number \
         above 0, and no distance from the best"
    )]
    Temperature {
        /// What was given.
        found: f32,
    },

    /// A request for a choice has a penalty that is none.
    #[error("inputs of a step: a penalty of {found}: expected a normal number above 0")]
    Penalty {
        /// What was given.
        found: f32,
    },

    /// A step runs over a cache of another shape than its plan's.
    #[error("the cache is {found:?}, the plan is for {expected:?}")]
    Cache {
        /// The plan's cache.
        expected: Box<CacheSpec>,
        /// The cache given.
        found: Box<CacheSpec>,
    },

    /// Two rows of a step write to the same place of the cache.
    #[error("rows {first} and {second} of a step write to the same place of the cache")]
    Overlap {
        /// A row.
        first: usize,
        /// A later one.
        second: usize,
    },

    /// A buffer was requested that is not in the plan, or with a wrong range or size.
    #[error("buffer {} cannot be read: {what}", id.0)]
    Read {
        /// The buffer.
        id: BufferId,
        /// What does not fit.
        what: &'static str,
    },

    /// A buffer was to be written that is no input of the plan, or with a wrong range or size.
    #[error("buffer {} cannot be written: {what}", id.0)]
    Write {
        /// The buffer.
        id: BufferId,
        /// What does not fit.
        what: &'static str,
    },

    /// The image of a weight is not what its backend writes.
    #[error("an image of a weight is damaged: {what}")]
    Image {
        /// What is wrong with it.
        what: &'static str,
    },

    /// A backend's weights do not leave it.
    #[error("this backend keeps no images of weights")]
    NoImages,

    /// The backend runs no layers with a recurrent state, or none with what else these need.
    #[error("this backend has no recurrent layers: choose the CPU")]
    NoStates,

    /// The backend could not get the memory.
    #[error("out of memory: {what} needs {bytes} bytes")]
    OutOfMemory {
        /// What was to be allocated.
        what: &'static str,
        /// Its size.
        bytes: usize,
    },

    /// The device allows no buffer of this size.
    #[error("{what} needs {bytes} bytes, and the device allows buffers of at most {most}")]
    BeyondLimit {
        /// What was to be allocated.
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The device's limit.
        most: u64,
    },

    /// The calling thread flushes subnormal numbers to zero or does not round to nearest, which
    /// would change results.
    #[error("the calling thread flushes subnormal numbers or does not round to nearest")]
    FloatMode,

    /// The device went away.
    #[error("the device was lost: {reason}")]
    DeviceLost {
        /// What the driver said.
        reason: String,
    },
}

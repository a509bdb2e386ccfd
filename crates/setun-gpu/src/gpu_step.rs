//! A plan made ready for a device.

use setun_ops::Plan;

use crate::{
    executor::Executor,
    launch::{Launch, Launches},
    recording::RecordingSlot,
    step_inputs::StepLayout,
    times::Times,
    weight::GpuWeight,
};

/// A plan as launches, with its memory.
pub struct GpuStep<E: Executor> {
    pub(crate) plan: Plan,
    pub(crate) layout: StepLayout,
    pub(crate) words: Vec<u32>,
    pub(crate) launches: Launches,
    pub(crate) weights: Vec<GpuWeight<E::Buffer>>,
    pub(crate) inputs: E::Buffer,
    pub(crate) recorded: RecordingSlot<E::List>,
    pub(crate) times: Option<Times>,
}

impl<E: Executor> GpuStep<E> {
    /// The launches of the plan, in order. [`Launch::when`](crate::launch::Launch::when) says in which steps each runs.
    #[must_use]
    pub fn launches(&self) -> &[Launch] {
        &self.launches.list
    }
}

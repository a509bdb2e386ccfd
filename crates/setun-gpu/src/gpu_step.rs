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
    /// What is launched, each in the [steps](crate::launch::When) that it takes part in.
    #[must_use]
    pub fn launches(&self) -> &[Launch] {
        &self.launches.list
    }
}

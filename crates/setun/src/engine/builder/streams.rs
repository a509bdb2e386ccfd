//! What each stream of an engine gets.

use std::time::Duration;

use super::EngineBuilder;
use crate::stream::BackPressure;

impl EngineBuilder {
    /// Most positions of a sequence, prompt and answer; no more than the model has. Less makes
    /// room for more sequences in the same memory. Default: those of the model.
    pub fn context_length(mut self, positions: usize) -> Self {
        self.context_length = Some(positions.max(1));
        self
    }

    /// Events that wait for the consumer of a stream, before [`BackPressure`] says what becomes of
    /// it. A step may add some more. Default: 64.
    pub fn buffer(mut self, events: usize) -> Self {
        self.buffer = events.max(1);
        self
    }

    /// What becomes of a generation whose consumer does not keep up. Default:
    /// [`BackPressure::Pause`].
    pub fn back_pressure(mut self, back_pressure: BackPressure) -> Self {
        self.back_pressure = back_pressure;
        self
    }

    /// The [`deadline`](crate::GenerateOptions::deadline) of generations that are given none.
    /// Default: none.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.unless.deadline = Some(time);
        self
    }
}

//! Limits and defaults of an engine's streams.

use setun_engine::{BackPressure, GenerateOptions};

use super::EngineBuilder;

impl EngineBuilder {
    /// Most positions of a sequence, prompt and answer; no more than the model has. Less makes
    /// room for more sequences in the same memory. Default: those of the model.
    pub fn context_length(mut self, positions: usize) -> Self {
        self.options.context_length = Some(positions.max(1));
        self
    }

    /// Events that may wait for the consumer of a stream. At the limit [`BackPressure`] applies; a
    /// step may add some more. Default: 64.
    pub fn buffer(mut self, events: usize) -> Self {
        self.options.buffer = events.max(1);
        self
    }

    /// Policy for a generation whose consumer does not keep up. Default:
    /// [`BackPressure::Pause`].
    pub fn back_pressure(mut self, back_pressure: BackPressure) -> Self {
        self.options.back_pressure = back_pressure;
        self
    }

    /// Options that generations take where they are not given. Default: those of the model.
    pub fn default_options(mut self, options: GenerateOptions) -> Self {
        self.options.defaults = options;
        self
    }
}

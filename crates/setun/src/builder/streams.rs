//! What each stream of an engine gets.

use setun_engine::{BackPressure, GenerateOptions};

use super::EngineBuilder;

impl EngineBuilder {
    /// Most positions of a sequence, prompt and answer; no more than the model has. Less makes
    /// room for more sequences in the same memory. Default: those of the model.
    pub fn context_length(mut self, positions: usize) -> Self {
        self.options.context_length = Some(positions.max(1));
        self
    }

    /// Events that wait for the consumer of a stream, before [`BackPressure`] says what becomes of
    /// it. A step may add some more. Default: 64.
    pub fn buffer(mut self, events: usize) -> Self {
        self.options.buffer = events.max(1);
        self
    }

    /// What becomes of a generation whose consumer does not keep up. Default:
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

//! Defaults of an engine for the options of its generations.

use std::time::Duration;

use super::GenerateOptions;

/// Options that take the place of those that are not given. Those of sampling are among the
/// engine's [`sampling_defaults`](crate::Engine::sampling_defaults).
#[derive(Clone, Debug, Default)]
pub struct DefaultOptions {
    /// [`GenerateOptions::max_tokens`].
    pub max_tokens: Option<usize>,
    /// [`GenerateOptions::seed`].
    pub seed: Option<u64>,
    /// [`GenerateOptions::stop`].
    pub stop: Vec<String>,
    /// [`GenerateOptions::deadline`].
    pub deadline: Option<Duration>,
}

impl DefaultOptions {
    /// Fills in what is not given.
    pub(crate) fn apply(&self, mut options: GenerateOptions) -> GenerateOptions {
        options.max_tokens = options.max_tokens.or(self.max_tokens);
        options.seed = options.seed.or(self.seed);
        options.deadline = options.deadline.or(self.deadline);
        if options.stop.is_empty() {
            options.stop.clone_from(&self.stop);
        }
        options
    }
}

//! What generations do unless told otherwise.

use std::time::Duration;

use crate::options::GenerateOptions;

/// Options that take the place of those that are not given. Those of sampling are among the
/// engine's [`sampling_defaults`](crate::Engine::sampling_defaults).
#[derive(Clone, Debug, Default)]
pub(crate) struct Unless {
    pub(crate) max_tokens: Option<usize>,
    pub(crate) seed: Option<u64>,
    pub(crate) stop: Vec<String>,
    pub(crate) deadline: Option<Duration>,
}

impl Unless {
    pub(super) fn apply(&self, mut options: GenerateOptions) -> GenerateOptions {
        options.max_tokens = options.max_tokens.or(self.max_tokens);
        options.seed = options.seed.or(self.seed);
        options.deadline = options.deadline.or(self.deadline);
        if options.stop.is_empty() {
            options.stop.clone_from(&self.stop);
        }
        options
    }
}

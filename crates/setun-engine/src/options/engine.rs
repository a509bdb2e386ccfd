//! Options of an engine, whatever model it runs.

use std::time::Duration;

use setun_text::option_table;

use super::BackPressure;

/// Calls `callback! { more… rows… }` with a row, as [`option_table!`](setun_text::option_table) has
/// them, for each option of an engine.
#[macro_export]
macro_rules! engine_options {
    ($callback:ident! { $($more:tt)* }) => { $callback! { $($more)*
        /// Maximum number of generations in one batch, on each device. Further ones wait.
        max_concurrent: usize as POSITIVE_COUNT = 64, "N", Batch, without_flag;

        /// Maximum number of generations beyond `max_concurrent` that each device takes, which wait.
        /// One more is refused (`busy`).
        ///
        /// Each sample and each beam counts, from its request to its last event.
        queue: usize as POSITIVE_COUNT = 1024, "N", Batch, without_flag;

        /// How long an idle engine waits for more requests after the first, so that they begin in
        /// one batch.
        batch_wait: Duration as WAIT = 0, "SECONDS", Batch, without_flag, without_key;

        /// Maximum number of tokens of a sequence, prompt included; no more than the model has.
        ///
        /// Less makes room for more sequences in the same memory.
        context_length: Option<usize> as POSITIVE_COUNT = "the model's", "N", Context,
            without_flag, without_key;

        /// Maximum size of the KV cache in whole contexts. Memory is taken as it is used.
        ///
        /// Generations whose tokens do not fit all at once wait, or give up their memory to others
        /// and begin again from their tokens, which changes no text.
        contexts: usize as POSITIVE_COUNT = 8, "N", Context, without_flag;

        /// Positions that stay in the cache after their generation, for prompts that begin alike; 0
        /// keeps none.
        ///
        /// They are part of the contexts and make room for what runs. Those least lately used go
        /// first.
        prefix_positions: Option<usize> as COUNT = "one context", "N", Context,
            without_flag, without_key;

        /// Number of events that may wait for the consumer of a stream.
        ///
        /// A step may add some more.
        buffer: usize as POSITIVE_COUNT = 64, "N", Streams, without_flag, without_key;

        /// What happens to a generation whose buffer is full.
        back_pressure: BackPressure as Choice(BackPressure::NAMES) = "pause", "WHAT", Streams,
            without_flag, without_key;

        /// Whether each operation is timed from the start, for a profile.
        profile: bool as Flag = false, "", Monitoring, without_flag, without_key;

        /// Whether the metrics have the time of each operation, from a few timed steps a second.
        operation_times: bool as Flag = false, "", Monitoring, without_flag, without_key;

        /// Whether the steps are kept as well, for a chart.
        timeline: bool as Flag = false, "", Monitoring, without_flag, without_key;
    } };
}

engine_options!(option_table! {
    /// Options of an engine, whatever model it runs.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct EngineOptions;
});

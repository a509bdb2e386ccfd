//! Effort of reasoning.

/// How much a model is to think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningEffort {
    /// It answers at once.
    None,
    /// As little as it can.
    Minimal,
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
    /// Very much.
    Xhigh,
    /// As much as it can.
    Max,
}

setun_text::named_options!(ReasoningEffort {
    None = "none",
    Minimal = "minimal",
    Low = "low",
    Medium = "medium",
    High = "high",
    Xhigh = "xhigh",
    Max = "max",
});

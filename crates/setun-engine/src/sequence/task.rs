//! Tasks of a sequence: generation, beam search, embedding and scoring.

use super::{Pool, Request, TaskRequest, beam_search::Search, prompt_logprobs::PromptLogprobs};

/// What a sequence runs for, and how far it has come.
#[derive(Debug)]
pub(super) enum Task {
    /// A token after the other; the prompt's log-probabilities before, if they are requested.
    Generate(Option<PromptLogprobs>),
    /// The likeliest texts.
    Beam(Box<Search>),
    /// A vector of its hidden states.
    Embed(Pool),
    /// The prompt's log-probabilities, or its keys and values alone; no token is chosen.
    Score(Option<PromptLogprobs>),
}

impl Task {
    /// The task of a request, which keeps a generation's own.
    pub(super) fn new(request: &mut Request) -> Self {
        match std::mem::take(&mut request.task) {
            TaskRequest::Generate(prompt) => Self::Generate(prompt.map(PromptLogprobs::new)),
            TaskRequest::Beam(search) => Self::Beam(Box::new(Search::new(request, search))),
            TaskRequest::Embed(pool) => Self::Embed(pool),
            TaskRequest::Score(prompt) => Self::Score(prompt.map(PromptLogprobs::new)),
        }
    }

    pub(super) fn beam(&self) -> Option<&Search> {
        if let Self::Beam(search) = self { Some(search) } else { None }
    }

    pub(super) fn beam_mut(&mut self) -> Option<&mut Search> {
        if let Self::Beam(search) = self { Some(search) } else { None }
    }

    pub(super) fn pool(&self) -> Option<&Pool> {
        if let Self::Embed(pool) = self { Some(pool) } else { None }
    }

    pub(super) fn pool_mut(&mut self) -> Option<&mut Pool> {
        if let Self::Embed(pool) = self { Some(pool) } else { None }
    }

    /// The log-probabilities that are still to be reported.
    pub(super) fn prompt_logprobs(&self) -> Option<&PromptLogprobs> {
        match self {
            Self::Generate(prompt) | Self::Score(prompt) => prompt.as_ref(),
            Self::Beam(_) | Self::Embed(_) => None,
        }
    }

    /// Where these are kept, if the task has any.
    pub(super) fn prompt_logprobs_mut(&mut self) -> Option<&mut Option<PromptLogprobs>> {
        match self {
            Self::Generate(prompt) | Self::Score(prompt) => Some(prompt),
            Self::Beam(_) | Self::Embed(_) => None,
        }
    }
}

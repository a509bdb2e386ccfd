//! Log-probabilities of a prompt's tokens.

use setun_model::Row;
use setun_text::{Logprobs, StreamDecoder};

use super::{PromptRange, Sequence};
use crate::{
    error::Error,
    event::{Event, PromptTokens, TextDelta, TokenLogprob},
};

/// Most rows of a step that give log-probabilities of the prompt: each takes all logits of the vocabulary.
pub(crate) const MAX_PROMPT_LOGPROB_ROWS: usize = 16;

/// The log-probabilities of a prompt so far.
#[derive(Debug)]
pub(crate) struct PromptLogprobs {
    from: usize,
    tokens: Vec<TextDelta>,
    decoder: Option<StreamDecoder>,
    is_reported: bool,
}

impl PromptLogprobs {
    /// Of a prompt's tokens from one on, whose text the decoder gives.
    pub(super) fn new(PromptRange { from, decoder }: PromptRange) -> Self {
        Self { from, tokens: vec![], decoder, is_reported: false }
    }

    /// The token that is reported next.
    fn next(&self) -> usize {
        self.from + self.tokens.len()
    }
}

impl Sequence {
    /// The log-probabilities of its prompt, which pass to the next of its samples.
    pub(crate) fn take_prompt_logprobs(&mut self) -> Option<PromptLogprobs> {
        self.task.prompt_logprobs_mut()?.take()
    }

    pub(crate) fn set_prompt_logprobs(&mut self, prompt: Option<PromptLogprobs>) {
        if let Some(kept) = self.task.prompt_logprobs_mut() {
            *kept = prompt;
        }
    }

    /// Those of its tokens that need not be run, if the cache has them.
    pub(crate) fn reusable(&self) -> &[u32] {
        match (self.task.prompt_logprobs(), self.first_pooled()) {
            (Some(prompt), _) if !prompt.is_reported => {
                &self.context[..prompt.next().saturating_sub(1)]
            }
            (_, Some(first)) => &self.context[..first],
            _ => &self.context,
        }
    }

    /// Whether rows of its prompt give log-probabilities.
    pub(crate) fn reports_prompt(&self) -> bool {
        self.is_pooled() || self.task.prompt_logprobs().is_some_and(|prompt| !prompt.is_reported)
    }

    /// The next `rows` rows of its prompt with log-probabilities.
    pub(crate) fn prompt_output_rows(&self, rows: usize) -> std::ops::Range<usize> {
        let is_last = usize::from(rows == self.pending().len() && !self.is_pooled());
        self.plain_rows(rows)..rows.saturating_sub(is_last)
    }

    /// Of the next `rows` rows of its prompt, the first without log-probabilities.
    pub(crate) fn plain_rows(&self, rows: usize) -> usize {
        if let Some(first) = self.first_pooled() {
            return first.saturating_sub(self.cached).min(rows);
        }
        let Some(prompt) = self.task.prompt_logprobs().filter(|prompt| !prompt.is_reported) else {
            return rows;
        };
        // The row before a token gives its log-probability; the prompt's last row gives none.
        let first = prompt.next().saturating_sub(1).saturating_sub(self.cached);
        first.min(rows)
    }

    /// Takes what the model thought of the next token of the prompt.
    ///
    /// # Errors
    ///
    /// If a token cannot be decoded, or the model gives no hidden states where they are requested.
    pub(crate) fn apply_prompt_row(&mut self, row: Row<'_>) -> Result<(), Error> {
        self.add_state(row)?;
        let Some(Some(prompt)) = self.task.prompt_logprobs_mut() else { return Ok(()) };
        if prompt.next() == 0 {
            let delta = TextDelta { token: self.context[0], ..TextDelta::default() };
            prompt.push(delta)?;
        }
        let Row::Logits(logits) = row else { return Ok(()) };
        let token = self.context[prompt.next()];
        let top = self.request.top_logprobs;
        let delta = token_logprobs(logits, token, top, prompt.decoder.as_ref());
        if delta.logprob.is_some_and(f64::is_nan) {
            let (expected, found) = ("finite".into(), "NaN".into());
            return Err(Error::ModelOutput { what: "a logit of a prompt's row", expected, found });
        }
        prompt.push(delta)
    }

    /// Emits the event of the prompt, once its last row has run.
    ///
    /// # Errors
    ///
    /// If a token cannot be decoded.
    pub(crate) fn report_prompt(&mut self) -> Result<(), Error> {
        self.reply_pooled();
        let kept = self.task.prompt_logprobs_mut().and_then(Option::as_mut);
        let Some(prompt) = kept.filter(|prompt| !prompt.is_reported) else { return Ok(()) };
        prompt.is_reported = true;
        if prompt.next() == 0 {
            prompt.push(TextDelta { token: self.context[0], ..TextDelta::default() })?;
        }
        if let Some(decoder) = &mut prompt.decoder
            && let Some(last) = prompt.tokens.last_mut()
        {
            last.text.push_str(&decoder.finish()?);
        }
        let event = Event::Prompt(PromptTokens { tokens: std::mem::take(&mut prompt.tokens) });
        for sample in &self.request.samples {
            sample.queue.push(Ok(event.clone()));
        }
        self.queue().push(Ok(event));
        Ok(())
    }
}

impl PromptLogprobs {
    fn push(&mut self, mut delta: TextDelta) -> Result<(), Error> {
        if let Some(decoder) = &mut self.decoder {
            delta.text = decoder.push(delta.token)?;
        }
        self.tokens.push(delta);
        Ok(())
    }
}

/// A token with its log-probability and those of the likeliest, by the logits before it.
/// The decoder has their texts.
pub(super) fn token_logprobs(
    logits: &[f32],
    token: u32,
    top: usize,
    decoder: Option<&StreamDecoder>,
) -> TextDelta {
    let logprobs = Logprobs::new(logits);
    let named = |(token, logprob)| {
        let text = decoder.map(|decoder| decoder.token_text(token)).unwrap_or_default();
        TokenLogprob { token, text, logprob }
    };
    let top_logprobs = logprobs.top(top).into_iter().map(named).collect();
    TextDelta { token, logprob: Some(logprobs.of(token)), top_logprobs, ..TextDelta::default() }
}

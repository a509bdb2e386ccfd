//! Steps that compute the logits of a text, with random texts in the same batches.

use setun::forward::{Batch, Model, Outputs, PagedCache, RequestedOutput, SequenceId};

use crate::{error::CliError, synth::noise};

/// Steps of a text, of which each has some of its tokens.
pub(super) struct Steps<'a> {
    model: &'a mut dyn Model,
    cache: PagedCache,
    tokens: &'a [u32],
    done: usize,
    chunk: usize,
    sequence: SequenceId,
    companions: Vec<Companion>,
    outputs: Outputs,
}

/// A random text, one token a step. When it has ended it begins anew.
struct Companion {
    sequence: SequenceId,
    tokens: Vec<u32>,
    done: usize,
}

impl<'a> Steps<'a> {
    pub(super) fn new(
        model: &'a mut dyn Model,
        tokens: &'a [u32],
        chunk: usize,
        companions: u16,
    ) -> Self {
        let (context, vocab) = (model.context_length(), model.vocab_size());
        let texts = (1..=u64::from(companions)).map(|key| random_tokens(key, vocab, context));
        let texts: Vec<_> = texts.collect();
        let lengths = texts.iter().map(Vec::len).chain([tokens.len()]);
        let blocks = lengths.map(|length| length.div_ceil(model.block_positions())).sum();
        let mut cache = PagedCache::for_sequences(&*model, blocks, 1 + usize::from(companions));
        let sequence = cache.create();
        let beside = |tokens| Companion { sequence: cache.create(), tokens, done: 0 };
        let companions: Vec<_> = texts.into_iter().map(beside).collect();
        let chunk = chunk.min(model.max_rows().saturating_sub(companions.len()).max(1));
        let outputs = Outputs::default();
        Self { model, cache, tokens, done: 0, chunk, sequence, companions, outputs }
    }

    /// The logits of the next tokens; none at the end. Half of the other texts stand before the text in
    /// the batch, half after it.
    pub(super) fn next(&mut self) -> Result<Option<&[f32]>, CliError> {
        let rest = &self.tokens[self.done..];
        let run = &rest[..rest.len().min(self.chunk)];
        if run.is_empty() {
            return Ok(None);
        }
        let (mut batch, cache) = (Batch::default(), &mut self.cache);
        let half = self.companions.len() / 2;
        let (before, after) = self.companions.split_at_mut(half);
        before.iter_mut().try_for_each(|companion| companion.push(cache, &mut batch))?;
        let first = batch.wanted();
        cache.extend(self.sequence, run.len())?;
        let row = batch.rows.len();
        batch.push_run(self.sequence, self.done, run, RequestedOutput::Logits);
        batch.request_logits(row);
        after.iter_mut().try_for_each(|companion| companion.push(cache, &mut batch))?;
        pollster::block_on(self.model.forward(&batch, cache, &mut self.outputs))?;
        self.done += run.len();
        let vocab = self.model.vocab_size();
        Ok(self.outputs.logits().get(first * vocab..(first + run.len()) * vocab))
    }
}

impl Companion {
    /// Adds the next token. The logits of every other one are computed.
    fn push(&mut self, cache: &mut PagedCache, batch: &mut Batch) -> Result<(), CliError> {
        if self.done == self.tokens.len() {
            cache.remove(self.sequence);
            self.sequence = cache.create();
            self.done = 0;
        }
        cache.extend(self.sequence, 1)?;
        let output = if self.done.is_multiple_of(2) {
            RequestedOutput::Logits
        } else {
            RequestedOutput::Nothing
        };
        batch.push_run(self.sequence, self.done, &self.tokens[self.done..=self.done], output);
        self.done += 1;
        Ok(())
    }
}

/// A text of 3 to 99 tokens, as far as the context holds it.
fn random_tokens(key: u64, vocab: usize, context: usize) -> Vec<u32> {
    let length = usize::try_from(3 + noise(key, 0) % 97).unwrap_or(3).min(context);
    let token = |place| u32::try_from(noise(key, place) % (vocab as u64).max(1)).unwrap_or(0);
    (1..=length as u64).map(token).collect()
}

//! A search: rows of logits in, the next rows and at last the best texts out.

use std::collections::HashMap;

use setun_text::{Draw, Logprobs, Sampler, Step, TextError};

use super::{
    Beam, BeamOptions,
    candidates::{Candidate, Candidates},
    group::{Group, Hypothesis, Rules},
};
use crate::{error::Error, event::FinishReason};

/// A beam search without its model: it says which sequences it has, and is given the logits that
/// follow them.
#[derive(Clone, Debug)]
pub(crate) struct BeamSearch {
    options: BeamOptions,
    sampler: Sampler,
    eos_tokens: Vec<u32>,
    rules: Rules,
    groups: Vec<Group>,
}

impl BeamSearch {
    /// From a prompt, for up to `max_tokens` generated ones. The options are checked; of the
    /// sampler's only those count that act on single tokens.
    pub(crate) fn new(
        prompt: &[u32],
        max_tokens: usize,
        options: BeamOptions,
        sampler: Sampler,
        eos_tokens: Vec<u32>,
    ) -> Self {
        let rules = Rules::new(&options, prompt.len(), max_tokens);
        let group = Group::new(prompt, options.num_beams / options.num_beam_groups);
        let groups = vec![group; options.num_beam_groups];
        Self { options, sampler, eos_tokens, rules, groups }
    }

    /// The sequences whose next logits are requested, in order; all are equally long. At first it
    /// is the prompt alone, and none once the search has ended.
    pub(crate) fn rows(&self) -> Vec<&[u32]> {
        let mut rows: Vec<&[u32]> = vec![];
        for hypothesis in self.running() {
            if hypothesis.row == rows.len() {
                rows.push(&hypothesis.tokens);
            }
        }
        rows
    }

    /// Most beams.
    pub(crate) fn beams(&self) -> usize {
        self.options.num_beams
    }

    fn running(&self) -> impl Iterator<Item = &Hypothesis> {
        self.groups.iter().flat_map(|group| &group.running)
    }

    /// Takes the logits of all rows, each `[vocab]`. `stops` is asked whether a text ends with a
    /// token after a row, beside end tokens. Of each row that there is then: the row that it
    /// goes on from.
    ///
    /// # Errors
    ///
    /// If a logit is not finite, no token may come anywhere, or `stops` fails.
    pub(crate) fn advance(
        &mut self,
        logits: &[impl AsRef<[f32]>],
        stops: &mut dyn FnMut(usize, u32) -> Result<bool, Error>,
    ) -> Result<Vec<usize>, Error> {
        let scores: Vec<_> =
            logits.iter().map(|logits| Logprobs::new(logits.as_ref()).row()).collect();
        let mut taken = HashMap::new();
        for number in 0..self.groups.len() {
            let candidates = self.candidates(number, &scores, &taken)?;
            let mut scored = vec![];
            for candidate in candidates {
                scored.push((candidate, self.end(number, &candidate, stops)?));
            }
            for token in self.groups[number].advance(&scored, &self.rules) {
                *taken.entry(token).or_insert(0_u16) += 1;
            }
        }
        if self.groups.iter().all(|group| group.running.is_empty() && group.found.is_empty()) {
            return Err(TextError::NoTokenLeft.into());
        }
        Ok(self.number_rows())
    }

    /// The best candidates of a group: as many as leave enough where as many of each beam end
    /// as there are end tokens.
    fn candidates(
        &self,
        group: usize,
        scores: &[Vec<f32>],
        taken: &HashMap<u32, u16>,
    ) -> Result<Vec<Candidate>, Error> {
        let size = self.options.num_beams / self.options.num_beam_groups;
        let mut candidates = Candidates::new(size * (1 + self.eos_tokens.len()).max(2));
        for (beam, hypothesis) in self.groups[group].running.iter().enumerate() {
            let mut scores = scores.get(hypothesis.row).cloned().unwrap_or_default();
            for (&token, &count) in taken {
                if let Some(score) = scores.get_mut(token as usize) {
                    *score -= self.options.diversity_penalty * f32::from(count);
                }
            }
            let step = Step::new(&hypothesis.tokens, self.rules.prompt_tokens, Draw::default());
            candidates.add(beam, hypothesis.sum, &self.sampler.rescore(&scores, &step)?);
        }
        Ok(candidates.into_ranked())
    }

    /// Why a text ends with a candidate, if it does.
    fn end(
        &self,
        group: usize,
        candidate: &Candidate,
        stops: &mut dyn FnMut(usize, u32) -> Result<bool, Error>,
    ) -> Result<Option<FinishReason>, Error> {
        let hypothesis = &self.groups[group].running[candidate.beam];
        let length = hypothesis.tokens.len() + 1 - self.rules.prompt_tokens;
        let ends =
            self.eos_tokens.contains(&candidate.token) || stops(hypothesis.row, candidate.token)?;
        Ok(match length >= self.rules.max_tokens {
            _ if ends => Some(FinishReason::Stop),
            true => Some(FinishReason::Length),
            false => None,
        })
    }

    /// Gives each hypothesis a row of its own; the rows that they had.
    fn number_rows(&mut self) -> Vec<usize> {
        let running = self.groups.iter_mut().flat_map(|group| &mut group.running);
        let number = |(row, hypothesis): (usize, &mut Hypothesis)| {
            std::mem::replace(&mut hypothesis.row, row)
        };
        running.enumerate().map(number).collect()
    }

    /// The tokens that all rows begin with, at least one less than each has: after these they are
    /// different, or each is a row of its own.
    pub(crate) fn shared(&self) -> usize {
        let rows = self.rows();
        let Some((first, others)) = rows.split_first() else { return 0 };
        let with_first = |row: &&[u32]| row.iter().zip(*first).take_while(|(a, b)| a == b).count();
        let shared = others.iter().map(with_first).min().unwrap_or(first.len());
        shared.min(first.len().saturating_sub(1))
    }

    /// The best texts, the best first. What still runs is among them, ended for this reason.
    pub(crate) fn finish(&mut self, reason: FinishReason) -> Vec<Beam> {
        for group in &mut self.groups {
            group.end(reason, &self.rules);
        }
        let groups = self.groups.iter_mut();
        let mut found: Vec<_> = groups.flat_map(|group| std::mem::take(&mut group.found)).collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found.truncate(self.options.num_return_sequences);
        found
    }
}

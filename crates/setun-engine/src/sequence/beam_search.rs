//! Beam search as the task of a sequence.

use futures::channel::oneshot;
use setun_text::{StopStrings, StreamDecoder};

use super::{Request, SearchRequest, Sequence};
use crate::{
    beams::{Beam, BeamSearch, BeamText},
    error::Error,
    event::FinishReason,
};

/// A search, and how its rows lie in the cache.
#[derive(Debug)]
pub(super) struct Search {
    beams: BeamSearch,
    /// The text of each row, if there are stop strings.
    watched: Vec<Watched>,
    reply: Option<oneshot::Sender<Vec<BeamText>>>,
    /// Tokens that all rows begin with, as long as they are one sequence in the cache.
    pub(super) forks_at: Option<usize>,
}

/// A text that may come to a stop string.
#[derive(Clone, Debug)]
struct Watched {
    decoder: StreamDecoder,
    stops: StopStrings,
}

impl Search {
    pub(super) fn new(request: &Request, search: SearchRequest) -> Self {
        let SearchRequest { options, reply } = search;
        let Request { prompt, max_tokens, sampler, eos_tokens, stops, decoder, .. } = request;
        let (sampler, eos_tokens) = (sampler.clone(), eos_tokens.clone());
        let beams = BeamSearch::new(prompt, *max_tokens, options, sampler, eos_tokens);
        let decoder = decoder.clone().filter(|_| !stops.is_empty());
        let watched = decoder.map(|decoder| Watched { decoder, stops: stops.clone() });
        let (watched, reply) = (watched.into_iter().collect(), Some(reply));
        Self { beams, watched, reply, forks_at: None }
    }

    /// Most beams.
    pub(super) fn count(&self) -> usize {
        self.beams.beams()
    }

    /// It gets a place in the cache, one for all rows; most of its positions that serve them all.
    pub(super) fn enter(&mut self) -> usize {
        let rows = self.beams.rows().len();
        self.forks_at = (rows > 1).then(|| self.beams.shared());
        self.forks_at.unwrap_or(usize::MAX)
    }

    fn advance(&mut self, logits: &[&[f32]]) -> Result<Vec<usize>, Error> {
        let watched = &self.watched;
        let parents = self.beams.advance(logits, &mut |row, token| match watched.get(row) {
            Some(text) => text.clone().push(token),
            None => Ok(false),
        })?;
        if !watched.is_empty() {
            let mut next = vec![];
            for (row, &parent) in self.beams.rows().iter().zip(&parents) {
                if let (Some(mut text), Some(&token)) = (watched.get(parent).cloned(), row.last()) {
                    text.push(token)?;
                    next.push(text);
                }
            }
            self.watched = next;
        }
        Ok(parents)
    }
}

impl Watched {
    /// Whether a stop string is complete with this token.
    fn push(&mut self, token: u32) -> Result<bool, Error> {
        let text = self.decoder.push(token)?;
        Ok(self.stops.push(&text).stopped.is_some())
    }
}

impl Sequence {
    /// Whether it is a search, whose rows take a step together.
    pub(crate) fn is_search(&self) -> bool {
        self.task.beam().is_some()
    }

    /// The next pending token of each row.
    pub(crate) fn row_tokens(&self) -> Vec<u32> {
        let rows = self.task.beam().into_iter().flat_map(|search| search.beams.rows());
        rows.filter_map(|row| row.get(self.cached).copied()).collect()
    }

    /// Positions that all rows have in common; all of them where there is one row.
    pub(crate) fn shared_positions(&self) -> usize {
        match self.task.beam() {
            Some(search) if search.beams.rows().len() > 1 => search.beams.shared(),
            _ => self.context.len(),
        }
    }

    /// How many rows go on from here beside the first; they are sequences of their own then.
    pub(crate) fn forks(&mut self) -> usize {
        let Some(search) = self.task.beam_mut() else { return 0 };
        match search.forks_at.take_if(|at| *at == self.cached) {
            Some(_) => search.beams.rows().len() - 1,
            None => 0,
        }
    }

    /// Takes the logits of all rows. Of each row that there is then: the one that it goes on from;
    /// none where the search has ended.
    ///
    /// # Errors
    ///
    /// If a logit is not finite, no token may come, or one cannot be decoded.
    pub(crate) fn apply_beam_logits(&mut self, logits: &[&[f32]]) -> Result<Vec<usize>, Error> {
        let now = self.request.clock.now();
        self.first_token.get_or_insert(now);
        self.last_token = Some(now);
        let Some(search) = self.task.beam_mut() else { return Ok(vec![]) };
        let parents = search.advance(logits)?;
        if let Some(&first) = search.beams.rows().first() {
            first.clone_into(&mut self.tokens);
            first.clone_into(&mut self.context);
        }
        Ok(parents)
    }

    /// Ends a search, and hands out what it has found; the best of it.
    ///
    /// # Errors
    ///
    /// If a token cannot be decoded.
    pub(super) fn finish_search(&mut self, reason: FinishReason) -> Result<Option<Found>, Error> {
        let Some(search) = self.task.beam_mut() else { return Ok(None) };
        let mut texts = vec![];
        for beam in search.beams.finish(reason) {
            texts.push(self.request.text_of(beam)?);
        }
        let is_whole = !matches!(reason, FinishReason::Aborted | FinishReason::Timeout);
        let best = texts.first().filter(|_| is_whole);
        let found = Found {
            reason: best.map_or(reason, |best| best.finish_reason),
            stop: best.and_then(|best| best.stop.clone()),
            tokens: texts.iter().map(|text| text.tokens.len()).sum(),
        };
        if let Some(reply) = search.reply.take() {
            let _ = reply.send(texts); // the caller may have gone
        }
        Ok(Some(found))
    }
}

/// What the last event says of a search.
pub(super) struct Found {
    pub(super) reason: FinishReason,
    pub(super) stop: Option<String>,
    pub(super) tokens: usize,
}

impl Request {
    /// The text of a beam, as a stream of its tokens would have it.
    fn text_of(&self, beam: Beam) -> Result<BeamText, Error> {
        let Beam { tokens, score, finish_reason } = beam;
        let (mut text, mut stop) = (String::new(), None);
        if let Some(mut decoder) = self.decoder.clone() {
            let mut stops = self.stops.clone();
            for token in tokens.iter().filter(|token| !self.eos_tokens.contains(token)) {
                text.push_str(&stops.push(&decoder.push(*token)?).text);
            }
            if matches!(finish_reason, FinishReason::Stop | FinishReason::Length) {
                let last = stops.push(&decoder.finish()?);
                text.push_str(&last.text);
                stop = last.stopped;
                text.push_str(&stops.flush());
            }
        }
        Ok(BeamText { text, tokens, score, finish_reason, stop })
    }
}

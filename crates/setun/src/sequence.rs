//! One generation, as its owner sees it.

use std::sync::Arc;

use setun_model::{Row, SequenceId, Wants};
use setun_ops::{
    best::{BestRequest, Ranked},
    choose::{ChooseRequest, NONE},
};
use setun_text::{
    Choice, Draw, Greedy, Needs, Sampler, SamplerState, Step, StopStrings, StreamDecoder, logprob,
};
use web_time::Instant;

use crate::{
    error::Error,
    event::{Done, Event, FinishReason, TextDelta, Timings, Usage},
    stream::Queue,
};

/// Where the best logits do not tell the next token, so many tokens take all logits: where that
/// happens once it may happen often, and a row that is run twice costs more than a whole head.
const ALL_LOGITS: usize = 16;

/// A request that has passed all checks.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) prompt: Vec<u32>,
    pub(crate) max_tokens: usize,
    pub(crate) sampler: Sampler,
    pub(crate) seed: u64,
    pub(crate) decoder: Option<StreamDecoder>,
    pub(crate) stops: StopStrings,
    pub(crate) eos_tokens: Vec<u32>,
    pub(crate) logprobs: bool,
    pub(crate) queue: Arc<Queue>,
    pub(crate) asked: Instant,
    #[expect(dead_code, reason = "its owner counts those that are there")]
    pub(crate) load: Arc<()>,
}

/// However a request ends, nothing more will come.
impl Drop for Request {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// What is the same for all generations of an engine.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) backend: &'static str,
    pub(crate) level: String,
    pub(crate) model: String,
    pub(crate) load_seconds: f64,
}

/// A generation with its place in the cache.
#[derive(Debug)]
pub(crate) struct Sequence {
    request: Request,
    pub(crate) id: SequenceId,
    tokens: Vec<u32>, // prompt and generated
    cached: usize,    // tokens whose keys and values are in the cache
    all_until: usize, // so many generated tokens take all logits
    sampling: SamplerState,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
}

/// Whether a generation goes on.
pub(crate) enum Next {
    Continue,
    /// The last row has to be run again: the cache is to forget it.
    Again,
    Finished(FinishReason, Option<String>),
}

impl Sequence {
    pub(crate) fn new(request: Request, id: SequenceId) -> Self {
        let tokens = request.prompt.clone();
        Self {
            request,
            id,
            tokens,
            cached: 0,
            all_until: 0,
            sampling: SamplerState::default(),
            first_token: None,
            last_token: None,
        }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.request.queue
    }

    /// Positions that are in the cache.
    pub(crate) fn cached(&self) -> usize {
        self.cached
    }

    /// Tokens that are not in the cache: the rest of the prompt, or the last token.
    pub(crate) fn pending(&self) -> &[u32] {
        &self.tokens[self.cached..]
    }

    /// The next `count` pending tokens have entered the cache.
    pub(crate) fn advance(&mut self, count: usize) {
        self.cached += count;
    }

    /// Its keys and values are gone: all its tokens are pending.
    pub(crate) fn begin_again(&mut self, id: SequenceId) {
        (self.id, self.cached) = (id, 0);
    }

    /// What the row of the last pending token is to give.
    pub(crate) fn wants(&self, vocabulary: usize) -> Wants {
        if self.generated() < self.all_until || self.request.logprobs {
            return Wants::Logits;
        }
        match self.request.sampler.needs(&self.step(), vocabulary) {
            Needs::Best { k, within, touched } => Wants::Best(BestRequest { k, within, touched }),
            _ => Wants::Logits,
        }
    }

    /// Whether the next token follows from the logits alone, so that a device can choose it.
    pub(crate) fn is_greedy(&self) -> bool {
        let needs_logits = self.generated() < self.all_until || self.request.logprobs;
        !needs_logits && self.request.sampler.follows(&self.step())
    }

    /// How a device chooses the next token.
    pub(crate) fn choice(&self) -> Wants {
        match self.request.sampler.greedy(&self.step()) {
            Some(Greedy { repetition_penalty: penalty, touched, biases, .. }) => {
                Wants::Choose(ChooseRequest { penalty, touched, biases })
            }
            None => Wants::Logits,
        }
    }

    /// Tokens that may still be generated.
    pub(crate) fn remaining(&self) -> usize {
        self.request.max_tokens - self.generated()
    }

    /// Chooses the next token and emits its event.
    ///
    /// # Errors
    ///
    /// If the logits are not finite, or a token cannot be decoded.
    pub(crate) fn accept(&mut self, row: Row<'_>) -> Result<Next, Error> {
        let Some(token) = self.choose(row)? else { return Ok(self.again()) };
        let logprob = match row {
            Row::Logits(logits) if self.request.logprobs => Some(logprob(logits, token)),
            _ => None,
        };
        self.take(token, logprob)
    }

    /// Takes the token that a device chose, and emits its event.
    ///
    /// # Errors
    ///
    /// If it cannot be decoded.
    pub(crate) fn accept_chosen(&mut self, token: u32) -> Result<Next, Error> {
        if token == NONE { Ok(self.again()) } else { self.take(token, None) }
    }

    /// Runs the last row again, for all logits.
    fn again(&mut self) -> Next {
        self.cached -= 1;
        self.all_until = self.generated() + ALL_LOGITS;
        Next::Again
    }

    fn take(&mut self, token: u32, logprob: Option<f64>) -> Result<Next, Error> {
        let now = Instant::now();
        self.first_token.get_or_insert(now);
        self.last_token = Some(now);
        self.tokens.push(token);

        let ends = self.request.eos_tokens.contains(&token);
        let next = if ends {
            Next::Finished(FinishReason::Stop, None)
        } else if self.generated() >= self.request.max_tokens {
            Next::Finished(FinishReason::Length, None)
        } else {
            Next::Continue
        };
        let (text, stopped) = self.decode(token, ends, matches!(next, Next::Finished(..)))?;
        self.queue().push(Ok(Event::Text(TextDelta { text, token, logprob })));
        Ok(match stopped {
            Some(stop) => Next::Finished(FinishReason::Stop, Some(stop)),
            None => next,
        })
    }

    /// The next token; none where the best logits do not tell it.
    fn choose(&mut self, row: Row<'_>) -> Result<Option<u32>, Error> {
        let (sampler, step) = (&self.request.sampler, self.step());
        let mut state = self.sampling;
        let choice = match row {
            Row::Logits(logits) => Some(sampler.sample(logits, &step, &mut state)?),
            Row::Ranked(ranked) => {
                let pair = |ranked: &Ranked| (ranked.token, ranked.logit);
                let ranked: Vec<_> = ranked.iter().map(pair).collect();
                sampler.sample_ranked(&ranked, &step, &mut state)?
            }
        };
        self.sampling = state;
        Ok(choice.map(|Choice { token, .. }| token))
    }

    /// Where the next token is chosen.
    fn step(&self) -> Step<'_> {
        let index = self.generated() as u64;
        let draw = Draw { seed: self.request.seed, sequence: 0, index };
        Step::new(&self.tokens, self.request.prompt.len(), draw)
    }

    /// The text that a token completes, held back while it may belong to a stop string.
    fn decode(
        &mut self,
        token: u32,
        ends: bool,
        last: bool,
    ) -> Result<(String, Option<String>), Error> {
        let request = &mut self.request;
        let Some(decoder) = &mut request.decoder else { return Ok((String::new(), None)) };
        let mut delta = if ends { String::new() } else { decoder.push(token)? };
        if last {
            delta.push_str(&decoder.finish()?);
        }
        let step = request.stops.push(&delta);
        let mut text = step.text;
        if last && step.stopped.is_none() {
            text.push_str(&request.stops.flush());
        }
        Ok((text, step.stopped))
    }

    /// Emits the last event.
    pub(crate) fn finish(&self, reason: FinishReason, stop: Option<String>, report: &Report) {
        let generated = self.generated();
        let first = self.first_token;
        let first_token_seconds =
            first.map_or(0.0, |first| (first - self.request.asked).as_secs_f64());
        let times = first.zip(self.last_token);
        let after_first = times.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        let tokens_per_second = if generated > 1 && after_first > 0.0 {
            to_f64(generated - 1) / after_first
        } else {
            0.0
        };
        self.queue().push(Ok(Event::Done(Done {
            finish_reason: reason,
            stop,
            usage: Usage { prompt_tokens: self.request.prompt.len(), generated_tokens: generated },
            timings: Timings {
                load_seconds: report.load_seconds,
                first_token_seconds,
                tokens_per_second,
            },
            seed: self.request.seed,
            backend: report.backend,
            level: report.level.clone(),
            model: report.model.clone(),
        })));
    }

    /// Tokens generated so far.
    pub(crate) fn generated(&self) -> usize {
        self.tokens.len() - self.request.prompt.len()
    }
}

impl Request {
    /// Most positions that this generation can come to hold: the last token is never cached.
    pub(crate) fn most_positions(&self) -> usize {
        self.prompt.len() + self.max_tokens - 1
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

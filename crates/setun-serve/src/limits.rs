//! Limits on what clients may ask for, and those of each key.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use setun::{Clock, Engine, EngineError, GenerateOptions, Prompt};

use crate::{
    api_keys::KeyHash, cache_salt, error::ApiError, parsing::Parsing, tokenizing::Tokenizing,
};

/// Time in which the headers of a request must come, by default.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// Time without a byte after which a body is given up, by default.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// Time after which a client that does not read is given up, by default.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// Limits of a server. Default: times for headers and bodies alone.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Requests a minute of each key, or of all clients where there are no keys.
    pub requests_per_minute: Option<u32>,
    /// Requests under way of each key, or of all clients where there are no keys.
    pub concurrent_requests: Option<usize>,
    /// Texts of each key, or of all clients where there are no keys, that run or wait: `n` of each
    /// prompt. Default: three quarters of what the engine takes, where there are several keys.
    pub concurrent_texts: Option<usize>,
    /// Open streams of all clients.
    pub streams: Option<usize>,
    /// Tokens of a prompt.
    pub prompt_tokens: Option<usize>,
    /// Tokens that are generated after a prompt: the largest `max_tokens`, and its default.
    pub output_tokens: Option<usize>,
    /// Open connections. Further ones get no more than `/health` and `/ready`; other requests are
    /// answered with 429.
    pub connections: Option<usize>,
    /// Time in which the headers of a request must come. Default: 30 s.
    pub header_timeout: Duration,
    /// Time without a byte after which a body is given up; also the time that it may take beyond 500
    /// bytes a second. Default: 60 s.
    pub body_timeout: Duration,
    /// Time after which a client is given up that takes no byte of its answer; also the time that it
    /// may let an answer wait beyond 500 bytes a second. Default: 60 s.
    pub write_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests_per_minute: None,
            concurrent_requests: None,
            concurrent_texts: None,
            streams: None,
            prompt_tokens: None,
            output_tokens: None,
            connections: None,
            header_timeout: HEADER_TIMEOUT,
            body_timeout: BODY_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
        }
    }
}

/// Limits, and what counts towards them.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    pub(crate) limits: Limits,
    /// Whether keys share no prefixes.
    isolates_keys: bool,
    clock: Clock,
    keys: Mutex<HashMap<Option<KeyHash>, KeyUse>>,
    streams: AtomicUsize,
    pub(crate) parsing: Parsing,
    pub(crate) tokenizing: Tokenizing,
}

/// What the requests of a key have taken.
#[derive(Clone, Copy, Debug)]
struct KeyUse {
    under_way: usize,
    /// Texts of those.
    texts: usize,
    /// Requests that it may send at once.
    tokens: f64,
    updated: Instant,
}

/// A request of a key under way, until it is dropped.
#[derive(Clone, Debug)]
pub(crate) struct KeyGuard(Arc<KeyUsed>);

#[derive(Debug)]
struct KeyUsed {
    limiter: Arc<Limiter>,
    key: Option<KeyHash>,
    /// Whether there are other keys.
    is_one_of_several: bool,
    texts: AtomicUsize,
}

/// An open stream, until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamGuard(Arc<Limiter>);

impl Limiter {
    pub(crate) fn new(limits: Limits, isolates_keys: bool, clock: Clock) -> Arc<Self> {
        Arc::new(Self { limits, isolates_keys, clock, ..Self::default() })
    }

    /// Counts a request of a key, which may be one of several.
    pub(crate) fn begin(
        self: &Arc<Self>,
        key: Option<KeyHash>,
        is_one_of_several: bool,
    ) -> Result<KeyGuard, ApiError> {
        let now = self.clock.now();
        let mut keys = self.lock();
        let full = f64::from(self.limits.requests_per_minute.unwrap_or_default());
        let fresh = KeyUse { under_way: 0, texts: 0, tokens: full, updated: now };
        let used = keys.entry(key).or_insert(fresh);
        if self.limits.concurrent_requests.is_some_and(|most| used.under_way >= most) {
            let found = used.under_way;
            return Err(ApiError::too_many(format!("{found} requests of this key are under way")));
        }
        if self.limits.requests_per_minute.is_some() {
            used.take(full, now)?;
        }
        used.under_way += 1;
        let (limiter, texts) = (Arc::clone(self), AtomicUsize::new(0));
        Ok(KeyGuard(Arc::new(KeyUsed { limiter, key, is_one_of_several, texts })))
    }

    /// Texts that a key may have running and waiting.
    pub(crate) fn most_texts(
        &self,
        engine: &Engine,
        key: Option<KeyHash>,
        is_one_of_several: bool,
    ) -> Option<usize> {
        let is_shared = key.is_some() && is_one_of_several;
        self.limits.concurrent_texts.or_else(|| is_shared.then(|| engine.tenant_requests()))
    }

    /// Requests of batches that run at once, at most this number: half of what a key may have is for others.
    pub(crate) fn share_of_batches(&self, most: usize) -> usize {
        let of_key = self.limits.concurrent_requests.map_or(most, |requests| requests / 2);
        most.min(of_key).max(1)
    }

    /// Counts a stream.
    pub(crate) fn open_stream(self: &Arc<Self>) -> Result<StreamGuard, ApiError> {
        let open = self.streams.fetch_add(1, Ordering::Relaxed);
        let guard = StreamGuard(Arc::clone(self));
        match self.limits.streams {
            Some(most) if open >= most => Err(ApiError::too_many(format!(
                "{open} streams are open, expected less than {most}"
            ))),
            _ => Ok(guard),
        }
    }

    /// How many tokens a text may have, if that is limited.
    pub(crate) fn most_tokens(&self) -> Option<usize> {
        self.limits.output_tokens
    }

    /// Refuses a prompt with more tokens than one may have.
    pub(crate) fn check_prompt(
        &self,
        engine: &Engine,
        prompt: &Prompt,
        options: &GenerateOptions,
        field: &str,
    ) -> Result<(), ApiError> {
        let Some(most) = self.limits.prompt_tokens else { return Ok(()) };
        let refused = |found: String| Err(ApiError::prompt_too_long(field, &found, most));
        match engine.count_tokens_within(prompt, options, Some(most)) {
            Ok(found) if found > most => refused(found.to_string()),
            Ok(_) => Ok(()),
            Err(EngineError::PromptTooLong { tokens, .. }) => refused(format!("at least {tokens}")),
            Err(error) => Err(ApiError::of_request(&error, field)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<KeyHash>, KeyUse>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyGuard {
    /// The tenant of its requests, where there are several.
    pub(crate) fn tenant(&self) -> Option<u64> {
        let key = self.0.key.filter(|_| self.0.is_one_of_several)?;
        key.first_chunk().map(|first| u64::from_le_bytes(*first))
    }

    /// Its key, if it needs one.
    pub(crate) fn key(&self) -> Option<KeyHash> {
        self.0.key
    }

    /// Counts the texts of prompts until the end of the request.
    pub(crate) fn take_texts(
        &self,
        engine: &Engine,
        prompts: usize,
        samples: usize,
    ) -> Result<(), ApiError> {
        let KeyUsed { limiter, key, is_one_of_several, texts } = &*self.0;
        let places = is_one_of_several.then(|| engine.tenant_places());
        let most = limiter.most_texts(engine, *key, *is_one_of_several);
        let of_a_prompt = places.into_iter().chain(most).min();
        if let Some(most) = of_a_prompt.filter(|most| samples > *most) {
            let reason = format!("expected at most {most} texts of a key at once, found {samples}");
            return Err(ApiError::invalid("n", reason));
        }
        let Some(most) = most else { return Ok(()) };
        let count = prompts.saturating_mul(samples);
        let mut keys = limiter.lock();
        let Some(used) = keys.get_mut(key) else { return Ok(()) };
        if used.texts.saturating_add(count) > most {
            let found = used.texts;
            let message = format!(
                "{found} texts of this key run or wait, expected at most {most} with the {count} of this request"
            );
            return Err(ApiError::too_many(message));
        }
        used.texts += count;
        texts.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    /// The salt of a request in the prefix cache, by its own one and by its key.
    pub(crate) fn cache_salt(&self, own: Option<String>) -> Option<String> {
        let KeyUsed { limiter, key, .. } = &*self.0;
        match key.as_ref().filter(|_| limiter.isolates_keys) {
            Some(key) => Some(cache_salt::of_key(key, own.as_deref())),
            None => own,
        }
    }
}

impl KeyUse {
    /// Takes the place of a request, of which as many come back in a minute as there may be.
    fn take(&mut self, full: f64, now: Instant) -> Result<(), ApiError> {
        let elapsed = now.saturating_duration_since(self.updated).as_secs_f64();
        let per_second = full / 60.0;
        self.tokens = (self.tokens + elapsed * per_second).min(full);
        self.updated = now;
        if self.tokens < 1.0 {
            let wait = Duration::from_secs_f64((1.0 - self.tokens) / per_second);
            let message = format!("more than {full} requests a minute of this key");
            return Err(ApiError::too_many(message).after(wait));
        }
        self.tokens -= 1.0;
        Ok(())
    }
}

impl Drop for KeyUsed {
    fn drop(&mut self) {
        if let Some(used) = self.limiter.lock().get_mut(&self.key) {
            used.under_way -= 1;
            used.texts -= self.texts.load(Ordering::Relaxed);
        }
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_with_time() {
        let begun = Clock::held().now();
        let mut used = KeyUse { under_way: 0, texts: 0, tokens: 2.0, updated: begun };
        assert!(used.take(2.0, begun).is_ok() && used.take(2.0, begun).is_ok());
        assert!(
            used.take(2.0, begun).is_err()
                && used.take(2.0, begun + Duration::from_secs(29)).is_err()
        );
        assert!(used.take(2.0, begun + Duration::from_secs(31)).is_ok());
        let later = begun + Duration::from_hours(1);
        assert!(used.take(2.0, later).is_ok() && used.take(2.0, later).is_ok());
        assert!(used.take(2.0, later).is_err(), "no more than in a minute");
    }
}

//! Retries with exponential backoff and `Retry-After`.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::{Duration, SystemTime},
};

use crate::{error::Error, options::PullOptions};

/// Longest wait that no server asks for.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// How often a wait looks whether it is cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It may go well later.
    Later {
        /// What went wrong, should it be the last attempt.
        error: Error,
        /// How long the server asks to wait.
        wait: Option<Duration>,
    },
    /// The server has another file than before.
    Changed(String),
    /// The server gives no parts of the file.
    NoRanges,
    /// It will not go well.
    Final(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// A fault that may pass, of which the server says nothing.
pub(crate) fn later(error: Error) -> Fault {
    Fault::Later { error, wait: None }
}

/// Tries a request for a small answer until it succeeds or fails for good.
pub(crate) fn with_retries<T>(
    address: &str,
    options: &PullOptions,
    on_retry: &dyn Fn(String, Duration),
    mut request: impl FnMut() -> Result<T, Fault>,
) -> Result<T, Error> {
    let network = |reason| Error::Network { address: address.to_owned(), reason };
    let mut attempts = Attempts::new(options);
    loop {
        options.check_cancelled()?;
        match request() {
            Ok(found) => return Ok(found),
            Err(Fault::Later { error, wait }) => attempts.wait(error, wait, on_retry)?,
            Err(Fault::Final(error)) => return Err(error),
            Err(Fault::Changed(reason)) => return Err(network(reason)),
            Err(Fault::NoRanges) => return Err(network("no parts".into())),
        }
    }
}

/// Counts attempts that brought nothing.
pub(crate) struct Attempts<'a> {
    options: &'a PullOptions,
    failed: u32,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(options: &'a PullOptions) -> Self {
        Self { options, failed: 0 }
    }

    /// Something came: the count begins anew.
    pub(crate) fn progressed(&mut self) {
        self.failed = 0;
    }

    /// Waits as long as it is right to before the next attempt; `on_retry` receives the reason and the wait.
    ///
    /// # Errors
    ///
    /// The error that is given where this was the last attempt, or the wait is too long; that the
    /// pull was cancelled, or has reached its deadline.
    pub(crate) fn wait(
        &mut self,
        error: Error,
        asked: Option<Duration>,
        on_retry: impl FnOnce(String, Duration),
    ) -> Result<(), Error> {
        self.options.check_cancelled()?; // a request ends at the deadline, which is no fault of its own
        self.failed += 1;
        if self.failed >= self.options.attempts {
            return Err(error);
        }
        let wait = match (asked, error) {
            (Some(wait), Error::HttpStatus { address, .. }) if wait > self.options.max_wait => {
                return Err(Error::RateLimited { address, wait });
            }
            (asked, error) => {
                let own = jittered(self.options.backoff, self.failed);
                let wait = asked.map_or(own, |asked| asked.max(own));
                on_retry(error.to_string(), wait);
                wait
            }
        };
        pause(wait, self.options)
    }
}

/// Doubles with each failure, and is between half of that and all of it, so that many who failed
/// together do not come back together.
fn jittered(first: Duration, failed: u32) -> Duration {
    let whole = first.saturating_mul(1 << (failed - 1).min(16)).min(MAX_BACKOFF);
    let random = RandomState::new().build_hasher().finish().to_le_bytes()[0];
    whole / 2 + whole / 2 * u32::from(random) / u32::from(u8::MAX)
}

pub(crate) fn pause(wait: Duration, options: &PullOptions) -> Result<(), Error> {
    let clock = &options.clock;
    let end = clock.now() + wait;
    loop {
        options.check_cancelled()?;
        let left = end.saturating_duration_since(clock.now());
        if left.is_zero() {
            return Ok(());
        }
        clock.pass(left.min(POLL_INTERVAL));
    }
}

/// What `Retry-After` says: seconds, or a date.
pub(crate) fn retry_after(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use setun_clock::Clock;

    use super::*;

    #[test]
    fn servers_ask_for_seconds_or_a_date() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(retry_after("soon"), None);
    }

    #[test]
    fn waits_double_and_end() {
        for failed in 1..40 {
            let whole = Duration::from_millis(100)
                .saturating_mul(1 << (failed - 1).min(16))
                .min(MAX_BACKOFF);
            let wait = jittered(Duration::from_millis(100), failed);
            assert!((whole / 2..=whole).contains(&wait), "{failed}: {wait:?}");
        }
    }

    /// A wait of half an hour on the clock, which takes no time here.
    #[test]
    fn a_wait_is_as_long_as_it_is_told() {
        let clock = Clock::held();
        let options = PullOptions { clock: clock.clone(), ..PullOptions::default() };
        let begun = clock.now();
        let wait = Duration::from_mins(30);
        pause(wait, &options).unwrap();
        assert_eq!(clock.since(begun), wait);
        let deadline = Some(clock.now() + Duration::from_secs(1));
        let options = PullOptions { deadline, ..options };
        assert!(matches!(pause(wait, &options), Err(Error::DeadlineExceeded)));
        assert_eq!(clock.since(begun), wait + Duration::from_secs(1), "and no longer");
    }

    #[test]
    fn attempts_are_bounded() {
        let options =
            PullOptions { attempts: 3, backoff: Duration::ZERO, ..PullOptions::default() };
        let error = || Error::HttpStatus { address: "a".into(), status: 503, hint: "" };
        let mut attempts = Attempts::new(&options);
        let mut told = 0;
        for round in 0..5 {
            if round == 2 {
                attempts.progressed();
            }
            let result = attempts.wait(error(), None, |_, _| told += 1);
            assert_eq!(result.is_ok(), round < 4, "{round}");
        }
        assert_eq!(told, 4);
        let long = Attempts::new(&options).wait(error(), Some(Duration::from_secs(301)), |_, _| ());
        assert!(matches!(long, Err(Error::RateLimited { .. })));
    }
}

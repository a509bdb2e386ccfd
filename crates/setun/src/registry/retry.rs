//! Waiting before something is tried again.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{error::RegistryError, options::PullOptions};

/// No wait of its own is longer.
const LONGEST: Duration = Duration::from_secs(30);

/// How often a wait looks whether it is cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// Why an attempt failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// It may go well later.
    Later {
        /// What went wrong, should it be the last attempt.
        error: RegistryError,
        /// How long the server asks to wait.
        wait: Option<Duration>,
    },
    /// The server has another file than before.
    Changed(String),
    /// The server gives no parts of the file.
    NoRanges,
    /// It will not go well.
    Final(RegistryError),
}

impl From<RegistryError> for Fault {
    fn from(error: RegistryError) -> Self {
        Self::Final(error)
    }
}

/// Counts attempts that brought nothing.
pub(super) struct Attempts<'a> {
    options: &'a PullOptions,
    failed: u32,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(options: &'a PullOptions) -> Self {
        Self { options, failed: 0 }
    }

    /// Something came: the count begins anew.
    pub(super) fn progressed(&mut self) {
        self.failed = 0;
    }

    /// Waits as long as it is right to before the next attempt; `tell` hears why and how long.
    ///
    /// # Errors
    ///
    /// The error that is given where this was the last attempt, or the wait is too long.
    pub(super) fn wait(
        &mut self,
        error: RegistryError,
        asked: Option<Duration>,
        tell: impl FnOnce(String, Duration),
    ) -> Result<(), RegistryError> {
        self.failed += 1;
        if self.failed >= self.options.attempts {
            return Err(error);
        }
        let wait = match (asked, error) {
            (Some(wait), RegistryError::Status { address, .. })
                if wait > self.options.longest_wait =>
            {
                return Err(RegistryError::Busy { address, wait });
            }
            (asked, error) => {
                let own = jittered(self.options.backoff, self.failed);
                let wait = asked.map_or(own, |asked| asked.max(own));
                tell(error.to_string(), wait);
                wait
            }
        };
        sleep(wait, self.options)
    }
}

/// Doubles with each failure, and is between half of that and all of it, so that many who failed
/// together do not come back together.
fn jittered(first: Duration, failed: u32) -> Duration {
    let whole = first.saturating_mul(1 << (failed - 1).min(16)).min(LONGEST);
    let random = RandomState::new().build_hasher().finish().to_le_bytes()[0];
    whole / 2 + whole / 2 * u32::from(random) / u32::from(u8::MAX)
}

pub(super) fn sleep(wait: Duration, options: &PullOptions) -> Result<(), RegistryError> {
    let end = Instant::now() + wait;
    loop {
        options.check_cancelled()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(LOOK));
    }
}

/// What `Retry-After` says: seconds, or a date.
pub(super) fn retry_after(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = Duration::from_secs(unix_seconds(text)?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(date.saturating_sub(now))
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`.
fn unix_seconds(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = words[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let time: Vec<u64> = time.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [hour, minute, second] = time[..] else { return None };
    if !(1..=31).contains(&day)
        || !(1970..=9999).contains(&year)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    // Years that begin in March have their odd day at the end.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days.checked_sub(719_468)? * 24 + hour) * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_ask_for_seconds_or_a_date() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(unix_seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(unix_seconds("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
        assert_eq!(unix_seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(retry_after("soon"), None);
    }

    #[test]
    fn waits_double_and_end() {
        for failed in 1..40 {
            let whole =
                Duration::from_millis(100).saturating_mul(1 << (failed - 1).min(16)).min(LONGEST);
            let wait = jittered(Duration::from_millis(100), failed);
            assert!((whole / 2..=whole).contains(&wait), "{failed}: {wait:?}");
        }
    }

    #[test]
    fn attempts_are_bounded() {
        let options = PullOptions::new().attempts(3).backoff(Duration::ZERO);
        let error = || RegistryError::Status { address: "a".into(), status: 503, hint: "" };
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
        assert!(matches!(long, Err(RegistryError::Busy { .. })));
    }
}

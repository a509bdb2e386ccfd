//! Least speed of a download.

use std::{
    io::{self, ErrorKind, Read},
    time::{Duration, Instant},
};

use setun_clock::Clock;

use crate::options::PullOptions;

/// A body that fails where it comes too slowly: a server that sends a byte now and then would
/// otherwise hold a connection forever.
pub(crate) struct Paced<R> {
    body: R,
    window: Duration,
    /// Bytes that have to come in a window.
    least: u64,
    clock: Clock,
    since: Instant,
    bytes: u64,
}

impl<R> Paced<R> {
    pub(crate) fn new(body: R, options: &PullOptions) -> Self {
        let window = options.read_timeout;
        let least = u128::from(options.min_speed) * window.as_millis() / 1000;
        let least = u64::try_from(least).unwrap_or(u64::MAX);
        let clock = options.clock.clone();
        Self { body, window, least, since: clock.now(), clock, bytes: 0 }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.body.read(buffer)?;
        self.bytes += read as u64;
        let now = self.clock.now();
        if read > 0 && now.saturating_duration_since(self.since) >= self.window {
            let Self { window, least, bytes, .. } = *self;
            if bytes < least {
                let seconds = window.as_secs_f64();
                let reason = format!("{bytes} bytes came in {seconds:.1} s, expected {least}");
                return Err(io::Error::new(ErrorKind::TimedOut, reason));
            }
            (self.since, self.bytes) = (now, 0);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    /// Reads 100 bytes, three at a time, of which each takes this time. How many came.
    fn read(min_speed: u64, each: Duration) -> io::Result<u64> {
        let clock = Clock::held();
        let options = PullOptions {
            min_speed,
            read_timeout: WINDOW,
            clock: clock.clone(),
            ..PullOptions::default()
        };
        let mut body = Paced::new(io::repeat(7).take(100), &options);
        let mut read = 0;
        loop {
            clock.advance(each);
            match body.read(&mut [0; 3])? {
                0 => return Ok(read),
                more => read += more as u64,
            }
        }
    }

    #[test]
    fn a_window_that_brings_too_little_is_an_error() {
        let seconds = Duration::from_secs;
        // Three bytes come every two seconds, which is 15 in a window.
        assert_eq!(read(1, seconds(2)).unwrap(), 100);
        let error = read(2, seconds(2)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "15 bytes came in 10.0 s, expected 20");
        let error = read(1, seconds(9)).unwrap_err();
        assert_eq!(error.to_string(), "6 bytes came in 10.0 s, expected 10");
    }

    #[test]
    fn each_window_counts_by_itself() {
        let clock = Clock::held();
        let (min_speed, read_timeout) = (1, WINDOW);
        let options =
            PullOptions { min_speed, read_timeout, clock: clock.clone(), ..PullOptions::default() };
        let mut body = Paced::new(io::repeat(7), &options);
        assert_eq!(body.read(&mut [0; 99]).unwrap(), 99, "much in the first window");
        clock.advance(WINDOW);
        assert_eq!(body.read(&mut [0; 3]).unwrap(), 3);
        clock.advance(WINDOW);
        let error = body.read(&mut [0; 3]).unwrap_err();
        assert_eq!(error.to_string(), "3 bytes came in 10.0 s, expected 10");
    }

    #[test]
    fn any_speed_is_allowed_where_none_is_asked() {
        assert_eq!(read(0, Duration::from_hours(1)).unwrap(), 100);
        assert_eq!(read(u64::MAX, Duration::ZERO).unwrap(), 100, "no window is over");
    }
}

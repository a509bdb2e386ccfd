//! Least speed of a download.

use std::{
    io::{self, ErrorKind, Read},
    time::{Duration, Instant},
};

use crate::options::PullOptions;

/// A body that fails where it comes too slowly: a server that sends a byte now and then would
/// otherwise hold a connection forever.
pub(crate) struct Paced<R> {
    body: R,
    window: Duration,
    /// Bytes that have to come in a window.
    least: u64,
    since: Instant,
    bytes: u64,
}

impl<R> Paced<R> {
    pub(crate) fn new(body: R, options: &PullOptions) -> Self {
        let window = options.read_timeout;
        let least = u128::from(options.min_speed) * window.as_millis() / 1000;
        let least = u64::try_from(least).unwrap_or(u64::MAX);
        Self { body, window, least, since: Instant::now(), bytes: 0 }
    }
}

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.body.read(buffer)?;
        self.bytes += read as u64;
        if read > 0 && self.since.elapsed() >= self.window {
            let Self { window, least, bytes, .. } = *self;
            if bytes < least {
                let seconds = window.as_secs_f64();
                let reason = format!("{bytes} bytes came in {seconds:.1} s, expected {least}");
                return Err(io::Error::new(ErrorKind::TimedOut, reason));
            }
            (self.since, self.bytes) = (Instant::now(), 0);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(min_speed: u64, window: Duration) -> io::Result<u64> {
        let options = PullOptions { min_speed, read_timeout: window, ..PullOptions::default() };
        let mut body = Paced::new(io::repeat(7).take(100), &options);
        let mut read = 0;
        loop {
            match body.read(&mut [0; 3])? {
                0 => return Ok(read),
                more => read += more as u64,
            }
        }
    }

    #[test]
    fn a_window_that_brings_too_little_is_an_error() {
        // A window that is over at once, so that no test waits: each read is one.
        let window = Duration::from_nanos(1);
        assert_eq!(read(u64::MAX, window).unwrap(), 100, "less than a byte is expected in it");
        let mut slow = Paced::new(io::repeat(7), &PullOptions::default());
        (slow.window, slow.least) = (Duration::ZERO, 5);
        assert_eq!(slow.read(&mut [0; 9]).unwrap(), 9);
        let error = slow.read(&mut [0; 3]).unwrap_err();
        assert_eq!(error.to_string(), "3 bytes came in 0.0 s, expected 5");
    }

    #[test]
    fn any_speed_is_allowed_where_none_is_asked() {
        assert_eq!(read(0, Duration::ZERO).unwrap(), 100);
        assert_eq!(read(u64::MAX, Duration::from_hours(1)).unwrap(), 100);
    }
}

//! Times and durations as the API has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use setun::text::CivilTime;

/// A time in UTC after RFC 3339.
pub(super) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let CivilTime { year, month, day, hour, minute, second } =
        CivilTime::from_unix_seconds(i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    let nanoseconds = since.subsec_nanos();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanoseconds:09}Z")
}

/// A duration in nanoseconds.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_nine_digits_after_the_second() {
        let time = UNIX_EPOCH + Duration::new(951_782_399, 5_000);
        assert_eq!(rfc3339(time), "2000-02-28T23:59:59.000005000Z");
        assert_eq!(nanoseconds(Duration::from_millis(3)), 3_000_000);
    }
}

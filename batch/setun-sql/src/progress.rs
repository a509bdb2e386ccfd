//! Progress of rows in words.

/// Progress in words: rows, tokens a second and the time left, after this number of seconds.
#[expect(clippy::cast_precision_loss, reason = "counts below 2^52")]
#[must_use]
pub fn progress_words(
    done: u64,
    total: Option<u64>,
    tokens: u64,
    errors: u64,
    elapsed: f64,
) -> String {
    let mut words = vec![match total {
        Some(total) => format!("{done} of {total} rows"),
        None => format!("{done} rows"),
    }];
    if errors > 0 {
        words.push(format!("{errors} with an error"));
    }
    if tokens > 0 && elapsed > 0.0 {
        words.push(format!("{:.0} tokens/s", tokens as f64 / elapsed));
    }
    if let Some(left) = total.and_then(|total| total.checked_sub(done)) {
        words.push(format!("{} left", duration(elapsed * left as f64 / done.max(1) as f64)));
    }
    words.join(", ")
}

/// A time in its two largest units.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time to be read")]
fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_what_is_known() {
        assert_eq!(progress_words(5, None, 0, 0, 1.0), "5 rows");
        assert_eq!(progress_words(5, Some(20), 40, 0, 2.0), "5 of 20 rows, 20 tokens/s, 6 s left");
        assert_eq!(progress_words(9, Some(8), 0, 2, 1.0), "9 of 8 rows, 2 with an error");
        let times = [(59.6, "1 min 0 s"), (3599.0, "59 min 59 s"), (7261.0, "2 h 1 min")];
        for (seconds, expected) in times {
            assert_eq!(duration(seconds), expected);
        }
    }
}

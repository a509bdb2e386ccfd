//! Waiting for what comes by itself: another process, a file, a connection that ends.

#![allow(dead_code, reason = "most programs need one of both")]

use std::{
    thread,
    time::{Duration, Instant},
};

/// What has not come by then never comes: it turns a hang into a failure, on any machine.
const PATIENCE: Duration = Duration::from_mins(5);

/// Waits until something is so that nobody tells of.
///
/// # Panics
///
/// If it never is.
#[track_caller]
pub(crate) fn wait_for(what: &str, is_so: impl FnMut() -> bool) {
    assert!(comes(is_so), "{what} does not come");
}

/// Waits the same way. False if it never is.
pub(crate) fn comes(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

//! The one place that catches a panic of the `tokenizers` crate.
//!
//! The checks of a file leave it none that is known. Natively one that is not becomes an error, and
//! the tokenizer can be used again: it is never changed, but for a cache that skips a poisoned lock.
//! WebAssembly cannot catch, so there the checks alone must do.

/// What the work gives, or the words of its panic.
#[cfg(not(target_family = "wasm"))]
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("the tokenizers crate panicked: {}", words.unwrap_or("without words"))
    })
}

/// What the work gives.
#[cfg(target_family = "wasm")]
#[allow(clippy::unnecessary_wraps, reason = "a panic is an error elsewhere")]
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    Ok(work())
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::caught;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(caught(|| 3), Ok(3));
        let error = caught(|| -> u8 { panic!("at token {}", 7) }).expect_err("a panic");
        assert_eq!(error, "the tokenizers crate panicked: at token 7");
        let error = caught(|| -> u8 { panic!("no number") }).expect_err("a panic");
        assert_eq!(error, "the tokenizers crate panicked: no number");
    }
}

//! The seed of the random draws of a test.

/// `SETUN_SEED`, from which every draw follows; 0 where it is not given. So a test draws the same
/// twice, and the check of another commit draws anew.
///
/// # Panics
///
/// If it is no number.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("SETUN_SEED").ok();
    given.map_or(0, |given| given.parse().expect("SETUN_SEED is a number"))
}

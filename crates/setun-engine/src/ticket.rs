//! Places in an owner's queue, which are counted where requests are made.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// How many requests wait for an owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tickets(Arc<AtomicUsize>);

/// A place in the queue, until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket(Tickets);

impl Tickets {
    /// So many places, unless there would be more than `most`; then how many are taken.
    pub(crate) fn take(&self, count: usize, most: usize) -> Result<Vec<Ticket>, usize> {
        let fits = |taken: usize| taken.checked_add(count).filter(|&sum| sum <= most);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)?;
        Ok((0..count).map(|_| Ticket(self.clone())).collect())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_once_its_ticket_is_dropped() {
        let tickets = Tickets::default();
        let two = tickets.take(2, 3).expect("room for three");
        assert_eq!(tickets.take(2, 3).expect_err("one is left"), 2);
        let _third = tickets.take(1, 3).expect("one is left");
        drop(two);
        assert_eq!(tickets.take(2, 3).expect("two are free").len(), 2);
        assert!(tickets.take(usize::MAX, usize::MAX).is_err());
    }
}

//! Slots of a scheduler's queue, which are counted where requests are made.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// How many requests wait for a scheduler.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueSlots(Arc<AtomicUsize>);

/// A place in the queue, until it is dropped.
#[derive(Debug)]
pub(crate) struct QueueSlot(QueueSlots);

impl QueueSlots {
    /// A place and others, together `count`, which is 1 or more, unless there would be more than
    /// `most`; then how many are taken.
    pub(crate) fn take(
        &self,
        count: usize,
        most: usize,
    ) -> Result<(QueueSlot, Vec<QueueSlot>), usize> {
        let fits = |taken: usize| taken.checked_add(count).filter(|&sum| sum <= most);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)?;
        let slot = || QueueSlot(self.clone());
        Ok((slot(), (1..count).map(|_| slot()).collect()))
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_once_its_ticket_is_dropped() {
        let queue_slots = QueueSlots::default();
        let two = queue_slots.take(2, 3).expect("room for three");
        assert_eq!(queue_slots.take(2, 3).expect_err("one is left"), 2);
        let _third = queue_slots.take(1, 3).expect("one is left");
        drop(two);
        assert_eq!(queue_slots.take(2, 3).expect("two are free").1.len(), 1);
        assert!(queue_slots.take(usize::MAX, usize::MAX).is_err());
    }
}

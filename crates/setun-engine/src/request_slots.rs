//! Slots of a scheduler for generations that run or wait, counted where requests are made.

use crate::sync::{Arc, AtomicUsize, Ordering};

/// Most places that one of several tenants may take, of this many. The rest is for the others.
pub(crate) fn tenant_share(places: usize) -> usize {
    (places - places / 4).max(1)
}

/// The generations that a scheduler has taken and not ended, and how many it may have.
///
/// What runs is not told from what waits: a scheduler picks requests up later than they are made,
/// so that the difference would be a race.
#[derive(Clone, Debug)]
pub(crate) struct RequestSlots {
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// Slots of one request, until they are dropped.
#[derive(Debug)]
pub(crate) struct RequestSlot {
    slots: RequestSlots,
    count: usize,
}

impl RequestSlots {
    pub(crate) fn new(most: usize) -> Self {
        Self { taken: Arc::default(), most }
    }

    /// Slots that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Most slots.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// This many slots, unless there are too few; then how many are taken.
    pub(crate) fn take(&self, count: usize) -> Result<RequestSlot, usize> {
        let fits = |taken: usize| taken.checked_add(count).filter(|&sum| sum <= self.most);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)?;
        Ok(RequestSlot { slots: self.clone(), count })
    }
}

impl RequestSlot {
    /// One of the slots, for another request.
    pub(crate) fn split(&mut self) -> Self {
        let count = self.count.min(1);
        self.count -= count;
        Self { slots: self.slots.clone(), count }
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.slots.taken.fetch_sub(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_free_again_once_they_are_dropped() {
        let slots = RequestSlots::new(3);
        let two = slots.take(2).expect("room for three");
        assert_eq!(slots.take(2).expect_err("one is left"), 2);
        let _third = slots.take(1).expect("one is left");
        drop(two);
        assert_eq!(slots.taken(), 1);
        assert!(slots.take(usize::MAX).is_err(), "no overflow");
    }

    #[test]
    fn slots_that_are_split_are_dropped_one_by_one() {
        let slots = RequestSlots::new(3);
        let mut first = slots.take(3).expect("room for three");
        let others = [first.split(), first.split()];
        assert_eq!(slots.taken(), 3);
        drop(others);
        assert_eq!(slots.taken(), 1);
        drop((first.split(), first.split(), first));
        assert_eq!(slots.taken(), 0);
    }
}

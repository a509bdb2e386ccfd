//! Slots of a scheduler for requests.

use loom::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::request_slots::RequestSlots;

/// Callers who take and give back. There are never more than the slots, and none is lost.
pub(crate) fn never_too_many(most: usize, callers: usize) {
    let slots = RequestSlots::new(most);
    let inside = Arc::new(AtomicUsize::new(0));
    let call = move |slots: RequestSlots, inside: Arc<AtomicUsize>| {
        let Ok(slot) = slots.take(1) else { return };
        assert!(inside.fetch_add(1, Ordering::SeqCst) < most, "more than {most}");
        inside.fetch_sub(1, Ordering::SeqCst);
        drop(slot);
    };
    let threads: Vec<_> = (0..callers)
        .map(|_| {
            let (slots, inside) = (slots.clone(), Arc::clone(&inside));
            thread::spawn(move || call(slots, inside))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a caller");
    }
    assert_eq!(slots.taken(), 0);
    assert!(slots.take(most).is_ok(), "all are free again");
}

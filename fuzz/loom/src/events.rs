//! The queue of events between a scheduler and a stream.

use std::future::poll_fn;

use loom::{
    future::block_on,
    sync::{Arc, Notify},
    thread,
};

use crate::{
    error::Error,
    event::Event,
    event_queue::{Demand, Queue},
    options::BackPressure,
};

/// A consumer that takes every event. Each comes once, in its order, then the end.
pub(crate) fn all_come(buffer: usize, events: usize) {
    let queue = Arc::new(Queue::new(buffer, BackPressure::Pause));
    let wake = Arc::new(Notify::new());
    let producer = spawn_producer(&queue, &wake, events);
    for expected in 0..events {
        let event = next(&queue, &wake).expect("an event");
        assert_eq!(event, Event(expected));
    }
    assert_eq!(next(&queue, &wake), Err(Error::Disposed));
    assert_eq!(producer.join().expect("a scheduler"), Demand::More);
}

/// A consumer that is dropped after an event.
pub(crate) fn is_dropped() {
    ends_early(Queue::leave, Demand::Gone, |_, _| ());
}

/// A consumer that asks for the end after an event, and takes what is left.
pub(crate) fn is_cancelled() {
    ends_early(Queue::cancel, Demand::Cancel, |queue, wake| while next(queue, wake).is_ok() {});
}

fn ends_early(end: fn(&Queue), expected: Demand, take_rest: fn(&Queue, &Notify)) {
    const EVENTS: usize = 3;
    let queue = Arc::new(Queue::new(1, BackPressure::Pause));
    let wake = Arc::new(Notify::new());
    let producer = spawn_producer(&queue, &wake, EVENTS);
    next(&queue, &wake).expect("an event");
    end(&queue);
    wake.notify();
    take_rest(&queue, &wake);
    let last = producer.join().expect("a scheduler");
    assert!(last == expected || last == Demand::More, "{last:?}");
}

/// Pushes events while they are wanted, as a scheduler does, and says what was wanted at last.
fn spawn_producer(
    queue: &Arc<Queue>,
    wake: &Arc<Notify>,
    events: usize,
) -> thread::JoinHandle<Demand> {
    let (queue, wake) = (Arc::clone(queue), Arc::clone(wake));
    thread::spawn(move || {
        let mut pushed = 0;
        let last = loop {
            let demand = queue.demand();
            match demand {
                Demand::Pause => wake.wait(),
                Demand::More if pushed < events => {
                    queue.push(Ok(Event(pushed)));
                    pushed += 1;
                }
                _ => break demand,
            }
        };
        queue.close();
        last
    })
}

/// As a stream does it: a scheduler that pauses is woken.
fn next(queue: &Queue, wake: &Notify) -> Result<Event, Error> {
    let (event, had_credit) = block_on(poll_fn(|context| queue.poll_next(context)));
    if !had_credit {
        wake.notify();
    }
    event
}

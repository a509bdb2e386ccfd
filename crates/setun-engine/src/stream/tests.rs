//! Messages between a consumer and the scheduler.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{
    StreamExt,
    channel::mpsc::unbounded,
    task::{ArcWake, waker},
};

use super::*;
use crate::{event::TextDelta, event_queue::Demand};

#[derive(Default)]
struct Count(AtomicUsize);

impl ArcWake for Count {
    fn wake_by_ref(count: &Arc<Self>) {
        count.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn text(token: u32) -> Event {
    Event::Text(TextDelta { token, ..TextDelta::default() })
}

#[test]
fn of_several_that_wait_for_the_next_event_the_last_one_is_woken() {
    let (commands, _receiver) = unbounded();
    let queue = Arc::new(Queue::default());
    let mut stream = GenerationStream::new(Arc::clone(&queue), commands);
    let tasks: [Arc<Count>; 2] = Default::default();
    for task in &tasks {
        let waker = waker(Arc::clone(task));
        assert!(stream.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
    }
    queue.push(Ok(text(7)));
    queue.push(Ok(text(8)));
    let woken = tasks.map(|task| task.0.load(Ordering::Relaxed));
    assert_eq!(woken, [0, 1], "once, and who polled last");
    let tokens: Vec<_> = stream.take_ready().into_iter().map(Result::unwrap).collect();
    assert!(
        matches!(&tokens[..], [Event::Text(a), Event::Text(b)] if (a.token, b.token) == (7, 8))
    );
    queue.close();
    assert!(matches!(pollster::block_on(stream.next()), Some(Err(Error::Disposed))));
    assert!(pollster::block_on(stream.next()).is_none());
}

#[test]
fn a_consumer_that_lags_pauses_its_generation_and_resumes_it_by_reading() {
    let (commands, mut receiver) = unbounded();
    let queue = Arc::new(Queue::default());
    let mut stream = GenerationStream::new(Arc::clone(&queue), commands);
    for token in 0..64 {
        assert_eq!(queue.demand(), Demand::More);
        queue.push(Ok(text(token)));
    }
    assert_eq!(queue.demand(), Demand::Pause);
    assert!(receiver.try_recv().is_err(), "the owner is not told of nothing");
    assert!(pollster::block_on(stream.next()).is_some());
    assert!(matches!(receiver.try_recv(), Ok(Command::Wake)));
    assert_eq!(queue.demand(), Demand::More);
    drop(stream);
    assert_eq!(queue.demand(), Demand::Gone);
    assert!(matches!(receiver.try_recv(), Ok(Command::Wake)));
}

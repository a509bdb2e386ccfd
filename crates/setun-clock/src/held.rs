//! A clock that stands still until it is advanced.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use web_time::Instant;

/// The time of all clones of a clock.
#[derive(Debug)]
pub(crate) struct Held(Mutex<State>);

#[derive(Debug)]
struct State {
    now: Instant,
    tick: Duration, // by which a look moves it
    waiting: Vec<(Instant, u64, Waker)>,
    arrivals: u64, // numbers of those who have waited
}

impl Default for Held {
    fn default() -> Self {
        Self::ticking(Duration::ZERO)
    }
}

impl Held {
    pub(crate) fn ticking(tick: Duration) -> Self {
        let now = Instant::now();
        Self(Mutex::new(State { now, tick, waiting: vec![], arrivals: 0 }))
    }

    pub(crate) fn now(&self) -> Instant {
        let tick = self.lock().tick;
        if !tick.is_zero() {
            self.advance(tick);
        }
        self.lock().now
    }

    pub(crate) fn advance(&self, time: Duration) {
        let due: Vec<_> = {
            let mut state = self.lock();
            state.now += time;
            let now = state.now;
            state.waiting.extract_if(.., |(end, ..)| *end <= now).collect()
        };
        for (_, _, waker) in due {
            waker.wake();
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is ready once a held clock shows a time.
#[derive(Debug)]
pub struct Arrival {
    held: Arc<Held>,
    end: Instant,
    number: u64,
}

impl Arrival {
    pub(crate) fn new(held: Arc<Held>, end: Instant) -> Self {
        let number = {
            let mut state = held.lock();
            state.arrivals += 1;
            state.arrivals
        };
        Self { held, end, number }
    }
}

impl Future for Arrival {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.held.lock();
        state.waiting.retain(|(_, number, _)| *number != self.number);
        if self.end <= state.now {
            return Poll::Ready(());
        }
        state.waiting.push((self.end, self.number, context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.held.lock().waiting.retain(|(_, number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    use super::*;
    use crate::Clock;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_stands_still_until_it_is_advanced() {
        let clock = Clock::held();
        let (begun, same) = (clock.now(), clock.clone());
        assert_eq!(clock.now(), begun);
        same.advance(SECOND);
        clock.pass(SECOND);
        assert_eq!((clock.since(begun), same.since(begun)), (2 * SECOND, 2 * SECOND));
        assert_eq!(clock.since(begun + 9 * SECOND), Duration::ZERO);
    }

    #[test]
    fn who_waits_is_woken_when_the_time_has_come_and_not_before() {
        let (clock, woken) = (Clock::held(), Arc::new(Woken::default()));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut arrival = clock.arrival(clock.now() + 2 * SECOND).expect("it is held");
        assert!(Pin::new(&mut arrival).poll(&mut context).is_pending());
        assert!(Pin::new(&mut arrival).poll(&mut context).is_pending(), "once, as often as polled");
        clock.advance(SECOND);
        assert_eq!((clock.waiting(), woken.0.load(Ordering::Relaxed)), (1, 0));
        clock.advance(SECOND);
        assert_eq!((clock.waiting(), woken.0.load(Ordering::Relaxed)), (0, 1));
        assert!(Pin::new(&mut arrival).poll(&mut context).is_ready());
        let mut left = clock.arrival(clock.now() + SECOND).expect("it is held");
        assert!(Pin::new(&mut left).poll(&mut context).is_pending());
        drop(left);
        assert_eq!(clock.waiting(), 0, "nobody waits any more");
    }

    #[test]
    fn one_that_ticks_moves_whenever_it_is_read() {
        let clock = Clock::ticking(SECOND);
        let begun = clock.now();
        assert_eq!((clock.since(begun), clock.since(begun)), (SECOND, 2 * SECOND));
    }

    #[test]
    fn nobody_moves_the_time_of_the_system() {
        let clock = Clock::system();
        let begun = clock.now();
        clock.advance(Duration::from_hours(1));
        assert!(clock.now() >= begun && clock.since(begun) < Duration::from_hours(1));
        assert!(clock.arrival(begun).is_none());
        assert_eq!(clock.waiting(), 0);
    }
}

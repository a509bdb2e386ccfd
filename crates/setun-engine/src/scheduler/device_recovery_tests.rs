//! The scheduler where a device is lost.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{FutureExt, channel::mpsc::UnboundedSender, future::ready};
use setun_ops::OpsError;

use super::{
    test_support::{BLOCKS, failure, generate, info, limits, spawn, zeros},
    *,
};
use crate::{
    ErrorCode,
    event::{Event, FinishReason},
    fake_model::lost_device,
    parts::ReloadModel,
};

/// Makes the same model every time, or none.
struct Anew<F> {
    make: F,
    times: Arc<AtomicUsize>,
}

impl<F: FnMut() -> Result<Box<dyn Model>, Error> + Send> ReloadModel for Anew<F> {
    fn reload(&mut self) -> LocalBoxFuture<'_, Result<Box<dyn Model>, Error>> {
        self.times.fetch_add(1, Ordering::Relaxed);
        ready((self.make)()).boxed_local()
    }
}

/// A model that loses its device in its step `last`.
fn losing(last: usize) -> Box<dyn Model> {
    let mut steps = 0;
    Box::new(zeros(move |_| {
        steps += 1;
        if steps < last { Ok(()) } else { Err(lost_device()) }
    }))
}

fn scheduler(
    model: Box<dyn Model>,
    make: impl FnMut() -> Result<Box<dyn Model>, Error> + Send + 'static,
) -> (UnboundedSender<Command>, Arc<AtomicUsize>) {
    let times = Arc::new(AtomicUsize::new(0));
    let reload = Anew { make, times: Arc::clone(&times) };
    let scheduler = Scheduler::new(model, info(), limits(BLOCKS)).with_reload(Box::new(reload));
    (spawn(scheduler), times)
}

#[test]
fn generations_go_on_where_a_device_was_lost() {
    let (commands, times) = scheduler(losing(4), || Ok(losing(5)));
    let streams = [(5, 9), (2, 6)].map(|request| generate(&commands, request));
    for (stream, tokens) in streams.into_iter().zip([9, 6]) {
        assert_eq!(stream.wait().expect("a text").tokens, vec![0; tokens]);
    }
    assert!(times.load(Ordering::Relaxed) > 1, "each model lives for few steps");
}

#[test]
fn a_device_that_is_lost_again_at_once_ends_them() {
    let (commands, times) = scheduler(losing(3), || Ok(losing(1)));
    let (tokens, error) = failure(generate(&commands, (5, 9)));
    assert_eq!((tokens, error.code()), (2, ErrorCode::DeviceLost));
    assert_eq!(times.load(Ordering::Relaxed), 1);
}

#[test]
fn a_later_generation_tries_again() {
    let mut made = 0;
    let (commands, times) = scheduler(losing(1), move || {
        made += 1;
        Ok(losing(if made < 3 { 1 } else { 100 }))
    });
    for _ in 0..2 {
        let (tokens, error) = failure(generate(&commands, (5, 9)));
        assert_eq!((tokens, error.code()), (0, ErrorCode::DeviceLost));
    }
    assert_eq!(generate(&commands, (5, 9)).wait().expect("a text").tokens, vec![0; 9]);
    assert_eq!(times.load(Ordering::Relaxed), 3);
}

/// As of a driver that gives up on the second part of every long prompt.
#[test]
fn part_of_a_prompt_is_no_progress() {
    let short = || -> Box<dyn Model> {
        let mut steps = 0;
        let mut model = zeros(move |_| {
            steps += 1;
            if steps < 2 { Ok(()) } else { Err(lost_device()) }
        });
        model.max_rows = 2;
        Box::new(model)
    };
    let (commands, times) = scheduler(short(), move || Ok(short()));
    let (tokens, error) = failure(generate(&commands, (7, 3)));
    assert_eq!((tokens, error.code()), (0, ErrorCode::DeviceLost));
    assert_eq!(times.load(Ordering::Relaxed), 1);
}

/// Never comes back.
struct Stuck;

impl ReloadModel for Stuck {
    fn reload(&mut self) -> LocalBoxFuture<'_, Result<Box<dyn Model>, Error>> {
        futures::future::pending().boxed_local()
    }
}

#[test]
fn who_leaves_does_not_wait_for_a_model_to_come_back() {
    let scheduler = Scheduler::new(losing(3), info(), limits(BLOCKS)).with_reload(Box::new(Stuck));
    let commands = spawn(scheduler);
    let stream = generate(&commands, (5, 9));
    let cancel = stream.cancel_handle();
    let events = stream.blocking().inspect(|event| {
        if event.as_ref().is_ok_and(|event| matches!(event, Event::Text(_))) {
            cancel.cancel();
        }
    });
    let last = events.last().expect("an end").expect("no error");
    let Event::Done(done) = last else { panic!("{last:?}") };
    assert_eq!(done.finish_reason, FinishReason::Aborted);
}

#[test]
fn what_keeps_a_model_from_coming_back_is_reported() {
    let unreadable = || Error::Loading {
        code: ErrorCode::NotFound,
        reason: "cannot read `model.safetensors`".into(),
    };
    let (commands, _) = scheduler(losing(3), move || Err(unreadable()));
    let (tokens, error) = failure(generate(&commands, (5, 9)));
    assert_eq!((tokens, error.code()), (2, ErrorCode::NotFound));
}

#[test]
fn other_failures_make_no_model_anew() {
    let mut steps = 0;
    let failing = zeros(move |_| {
        steps += 1;
        match steps {
            3 => Err(OpsError::OutOfMemory { what: "a cache", bytes: 1 }.into()),
            _ => Ok(()),
        }
    });
    let (commands, times) = scheduler(Box::new(failing), || Err(Error::Disposed));
    let (tokens, error) = failure(generate(&commands, (5, 9)));
    assert_eq!((tokens, error.code()), (2, ErrorCode::OutOfMemory));
    assert_eq!(times.load(Ordering::Relaxed), 0);
}

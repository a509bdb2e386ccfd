//! `EventLoop`: visits to the event loop between steps, so that a worker receives its messages.

use std::{cell::RefCell, rc::Rc, time::Duration};

use futures::{
    channel::oneshot,
    future::{FutureExt, LocalBoxFuture, pending},
};
use js_sys::{Function, Reflect, global};
use wasm_bindgen::{JsCast, JsValue, closure::Closure};
use web_sys::MessageChannel;

/// The event loop of the host. A visit is a macrotask: a resolved promise would not let messages
/// in, and a timer waits 4 ms.
pub(crate) struct EventLoop {
    macrotask: Macrotask,
}

#[derive(Clone)]
enum Macrotask {
    /// Node's own.
    Immediate(Function),
    /// A message to this thread.
    Channel { channel: MessageChannel, waiting: Rc<RefCell<Option<oneshot::Sender<()>>>> },
    /// Neither is available: visits return at once.
    None,
}

impl EventLoop {
    pub(crate) fn new() -> Self {
        Self { macrotask: Macrotask::new() }
    }

    /// A visit with no time, else a wait for that time.
    pub(crate) fn pause(&self, time: Duration) -> LocalBoxFuture<'static, ()> {
        if !time.is_zero() {
            return timeout(time).boxed_local();
        }
        let macrotask = self.macrotask.clone();
        async move { macrotask.run().await }.boxed_local()
    }
}

/// Waits by the host's timer. Without one it waits forever, and only a command wakes the engine.
async fn timeout(time: Duration) {
    let milliseconds = i32::try_from(time.as_millis()).unwrap_or(i32::MAX); // as far as timers go
    let timer = Reflect::get(&global(), &JsValue::from_str("setTimeout"));
    let Some(timer) = timer.ok().and_then(|value| value.dyn_into::<Function>().ok()) else {
        return pending().await;
    };
    let (sender, receiver) = oneshot::channel();
    let resolve = Closure::once_into_js(move || {
        let _ = sender.send(());
    });
    if timer.call2(&JsValue::UNDEFINED, &resolve, &milliseconds.into()).is_ok() {
        let _ = receiver.await;
    } else {
        pending::<()>().await;
    }
}

impl Drop for EventLoop {
    /// An open port keeps its listener.
    fn drop(&mut self) {
        if let Macrotask::Channel { channel, .. } = &self.macrotask {
            channel.port1().close();
            channel.port2().close();
        }
    }
}

impl Macrotask {
    fn new() -> Self {
        let immediate = Reflect::get(&global(), &JsValue::from_str("setImmediate"));
        if let Some(function) = immediate.ok().and_then(|value| value.dyn_into().ok()) {
            return Self::Immediate(function);
        }
        let Ok(channel) = MessageChannel::new() else { return Self::None };
        let waiting: Rc<RefCell<Option<oneshot::Sender<()>>>> = Rc::default();
        let woken = Rc::clone(&waiting);
        let listener = Closure::<dyn FnMut()>::new(move || {
            if let Some(waiting) = woken.borrow_mut().take() {
                let _ = waiting.send(());
            }
        });
        channel.port1().set_onmessage(Some(listener.into_js_value().unchecked_ref()));
        Self::Channel { channel, waiting }
    }

    async fn run(&self) {
        let (sender, receiver) = oneshot::channel();
        match self {
            Self::Immediate(function) => {
                let resolve = Closure::once_into_js(move || {
                    let _ = sender.send(());
                });
                if function.call1(&JsValue::UNDEFINED, &resolve).is_err() {
                    return;
                }
            }
            Self::Channel { channel, waiting } => {
                *waiting.borrow_mut() = Some(sender);
                if channel.port2().post_message(&JsValue::UNDEFINED).is_err() {
                    return;
                }
            }
            Self::None => return,
        }
        // A dropped sender ends the visit too.
        let _ = receiver.await;
    }
}

//! Stages on threads of their own, joined by channels.

use std::{
    sync::mpsc::{self, Receiver},
    thread::{self, JoinHandle},
};

use futures::{
    StreamExt,
    channel::mpsc::{UnboundedReceiver, unbounded},
};
use setun_ops::OpsError;

use super::{Microbatch, Worker, ended};
use crate::error::ModelError;

/// Threads that end when this is dropped, which waits for them.
pub(crate) struct Threads {
    first: Option<HandOn>,
    done: UnboundedReceiver<Microbatch>,
    handles: Vec<JoinHandle<()>>,
}

/// Gives a piece to the next stage. False where it has ended.
type HandOn = Box<dyn Fn(Microbatch) -> bool + Send>;

impl Threads {
    pub(super) fn start(workers: Vec<Worker>) -> Result<Self, ModelError> {
        let (sender, done) = unbounded();
        let mut next: HandOn = Box::new(move |piece| sender.unbounded_send(piece).is_ok());
        let mut handles = vec![];
        for (index, worker) in workers.into_iter().enumerate().rev() {
            let (sender, pieces) = mpsc::channel();
            let hand_on =
                std::mem::replace(&mut next, Box::new(move |piece| sender.send(piece).is_ok()));
            let thread = thread::Builder::new().name(format!("setun-stage-{index}"));
            let spawned = thread.spawn(move || serve(worker, &pieces, &hand_on));
            let no_thread = |_| OpsError::OutOfMemory { what: "the thread of a stage", bytes: 0 };
            handles.push(spawned.map_err(no_thread)?);
        }
        Ok(Self { first: Some(next), done, handles })
    }

    pub(super) fn send(&mut self, piece: Microbatch) -> Result<(), ModelError> {
        let is_sent = self.first.as_ref().is_some_and(|first| first(piece));
        if is_sent { Ok(()) } else { Err(ended()) }
    }

    pub(super) async fn next(&mut self) -> Result<Microbatch, ModelError> {
        self.done.next().await.ok_or_else(ended)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.first = None; // the first thread ends, and with each the one after it
        for handle in self.handles.drain(..) {
            let _ = handle.join(); // one that has panicked has ended, too
        }
    }
}

/// Works at pieces until there are no more, or the next stage has ended.
fn serve(mut worker: Worker, pieces: &Receiver<Microbatch>, hand_on: &HandOn) {
    while let Ok(mut piece) = pieces.recv() {
        worker.owe(&piece.copies, &piece.state_copies);
        pollster::block_on(worker.work(&mut piece));
        if !hand_on(piece) {
            return;
        }
    }
}

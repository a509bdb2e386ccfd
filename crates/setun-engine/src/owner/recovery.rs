//! What becomes of generations whose step has failed.

use futures::{
    StreamExt,
    channel::mpsc::UnboundedReceiver,
    future::{Either, LocalBoxFuture, select},
};
use setun_model::Model;

use super::{Drafter, Limits, Owner, RowTimes, lost::Lost};
use crate::{
    command::Command,
    error::{Error, ErrorCode},
};

type Revived<'a> = LocalBoxFuture<'a, Result<Box<dyn Model>, Error>>;

impl Owner {
    /// A device that was lost is made anew, and whatever runs goes on from its tokens; so it does
    /// where the cache was refused the memory to grow, within what it has. Any other failure ends
    /// it, and so does a device that is lost again before a token came of it.
    pub(super) async fn recover(
        &mut self,
        error: Error,
        commands: &mut UnboundedReceiver<Command>,
    ) {
        if self.is_cache_refused(&error) {
            return self.begin_within(self.grown_blocks);
        }
        let is_lost = error.code() == ErrorCode::DeviceLost && !self.is_revived;
        self.is_revived = false; // the next generation may try again
        let Some(mut revival) = self.revival.take_if(|_| is_lost) else {
            return self.fail_all(error);
        };
        self.model = Box::new(Lost::like(&*self.model));
        self.is_lost = true;
        self.drafter.iter_mut().for_each(Drafter::lose);
        let model = self.wait_for(revival.reload(), commands).await;
        self.revival = Some(revival);
        match model {
            Some(Ok(model)) => {
                self.begin_again(model);
                self.revive_drafter(commands).await;
            }
            Some(Err(error)) => self.fail_all(error),
            None => {}
        }
    }

    /// Has a draft guess again whose device was lost. Without one no text is another, so that a
    /// failure ends nothing, and is tried again with a text that would have its guesses.
    pub(super) async fn revive_drafter(&mut self, commands: &mut UnboundedReceiver<Command>) {
        let Some(mut drafter) = self.drafter.take() else { return };
        if let Some(revival) = drafter.revival()
            && let Some(model) = self.wait_for(revival.reload(), commands).await
        {
            drafter.revived(model);
        }
        self.drafter = Some(drafter);
    }

    /// Whether what begins now is to wait until a lost draft is made anew.
    pub(super) fn is_drafter_due(&mut self) -> bool {
        let is_wanted = self.running.iter().any(|running| running.sequence.wants_guesses());
        let drafter = self.drafter.as_mut().filter(|_| is_wanted && !self.is_lost);
        drafter.is_some_and(|drafter| drafter.revival().is_some() && drafter.is_due())
    }

    /// Waits for a model, and hears meanwhile what it is told; none where nobody waits any more.
    async fn wait_for(
        &mut self,
        mut revived: Revived<'_>,
        commands: &mut UnboundedReceiver<Command>,
    ) -> Option<Result<Box<dyn Model>, Error>> {
        loop {
            let command = match select(revived, commands.next()).await {
                Either::Left((model, _)) => return Some(model),
                Either::Right((command, still)) => {
                    revived = still;
                    command?
                }
            };
            self.take(command);
            self.drop_ended();
            if self.running.is_empty() && self.waiting.is_empty() {
                return None;
            }
        }
    }

    /// Goes on with a model whose cache is empty.
    fn begin_again(&mut self, mut model: Box<dyn Model>) {
        model.set_profiled(self.profile.is_some());
        self.model = model;
        self.is_lost = false;
        self.grown_blocks = 0;
        self.fingerprint = None;
        self.begin_within(self.limits.blocks);
        self.row_times = RowTimes::default();
        self.is_revived = true;
    }

    /// Whether a step failed because the cache had to grow for it, and could not.
    fn is_cache_refused(&self, error: &Error) -> bool {
        error.code() == ErrorCode::OutOfMemory
            && self.grown_blocks > 0
            && self.cache.high_water_blocks() > self.grown_blocks
    }

    /// Begins everything that runs again, with an empty cache of so many blocks.
    fn begin_within(&mut self, blocks: usize) {
        for index in (0..self.running.len()).rev() {
            self.preempt(index);
        }
        if let Some(drafter) = &mut self.drafter {
            drafter.forget_all();
        }
        self.cache = Limits { blocks, ..self.limits }.cache(&*self.model);
    }
}

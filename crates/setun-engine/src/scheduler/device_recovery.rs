//! Recovery from a failed step, a lost device among them.

use futures::{
    StreamExt,
    channel::mpsc::UnboundedReceiver,
    future::{Either, LocalBoxFuture, select},
};
use setun_model::Model;

use super::{DraftModelRunner, Scheduler, lost_device::LostDevice, step_cost::StepCost};
use crate::{
    command::Command,
    error::{Error, ErrorCode},
};

type Reloaded<'a> = LocalBoxFuture<'a, Result<Box<dyn Model>, Error>>;

impl Scheduler {
    /// A device that was lost is opened again, and whatever runs goes on from its tokens; so it
    /// does where the cache was refused the memory to grow, within what it has. Any other failure
    /// ends it, and so does a device that is lost again before a token came of it.
    pub(super) async fn recover(
        &mut self,
        error: Error,
        commands: &mut UnboundedReceiver<Command>,
    ) {
        if self.is_cache_refused(&error) {
            return self.restart_within(self.kv.grown_blocks);
        }
        let is_device_lost =
            error.code() == ErrorCode::DeviceLost && !self.model.device.is_reloaded;
        self.model.device.is_reloaded = false; // the next generation may try again
        let Some(mut reload) = self.model.device.reload.take_if(|_| is_device_lost) else {
            return self.fail_all(error);
        };
        self.model.target = Box::new(LostDevice::like(&*self.model.target));
        self.model.device.is_lost = true;
        self.model.draft.iter_mut().for_each(DraftModelRunner::lose_device);
        let model = self.wait_for(reload.reload(), commands).await;
        self.model.device.reload = Some(reload);
        match model {
            Some(Ok(model)) => {
                self.restart_with(model);
                self.reload_draft(commands).await;
            }
            Some(Err(error)) => self.fail_all(error),
            None => {}
        }
    }

    /// Has a draft guess again whose device was lost. Without one no text is another, so that a
    /// failure ends nothing, and is tried again with a text that would have its guesses.
    pub(super) async fn reload_draft(&mut self, commands: &mut UnboundedReceiver<Command>) {
        let Some(mut draft_runner) = self.model.draft.take() else { return };
        if let Some(reload) = draft_runner.reload()
            && let Some(model) = self.wait_for(reload.reload(), commands).await
        {
            draft_runner.reloaded(model);
        }
        self.model.draft = Some(draft_runner);
    }

    /// Whether what begins now is to wait until a lost draft is loaded again.
    pub(super) fn is_draft_reload_due(&mut self) -> bool {
        let is_wanted = self.running.iter().any(|running| running.sequence.wants_draft());
        let draft_runner =
            self.model.draft.as_mut().filter(|_| is_wanted && !self.model.device.is_lost);
        draft_runner.is_some_and(|draft_runner| {
            draft_runner.reload().is_some() && draft_runner.is_reload_due()
        })
    }

    /// Waits for a model, and takes commands meanwhile; none where no request is left.
    async fn wait_for(
        &mut self,
        mut reloaded: Reloaded<'_>,
        commands: &mut UnboundedReceiver<Command>,
    ) -> Option<Result<Box<dyn Model>, Error>> {
        loop {
            let command = match select(reloaded, commands.next()).await {
                Either::Left((model, _)) => return Some(model),
                Either::Right((command, still)) => {
                    reloaded = still;
                    command?
                }
            };
            self.take(command);
            self.drop_ended();
            if self.running.is_empty() && self.queue.is_empty() {
                return None;
            }
        }
    }

    /// Continues with a model whose cache is empty.
    fn restart_with(&mut self, model: Box<dyn Model>) {
        self.model.replace_target(model);
        self.model.device.is_lost = false;
        self.kv.grown_blocks = 0;
        self.model.fingerprint = None;
        self.restart_within(self.kv.limits.blocks);
        self.model.step_cost = StepCost::default();
        self.model.device.is_reloaded = true;
    }

    /// Whether a step failed because the cache had to grow for it, and could not.
    fn is_cache_refused(&self, error: &Error) -> bool {
        error.code() == ErrorCode::OutOfMemory && self.kv.was_to_grow()
    }

    /// Begins everything that runs again, with an empty cache of this many blocks.
    fn restart_within(&mut self, blocks: usize) {
        for index in (0..self.running.len()).rev() {
            self.preempt(index);
        }
        if let Some(draft_runner) = &mut self.model.draft {
            draft_runner.forget_all();
        }
        self.kv.reset(blocks);
    }
}

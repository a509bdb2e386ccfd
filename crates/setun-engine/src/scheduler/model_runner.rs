//! The model of a scheduler: its steps, its draft model and the state of its device.

use std::task::Poll;

use futures::poll;
use setun_model::{MemoryUse, Model, PagedCache};

use super::{
    DraftModelRunner, StepPlan,
    apply_outputs::{HeadOutputs, StepOutputs},
    check_outputs::check_head,
    mask_worker::MaskWorker,
    plan_step::Budget,
    step_cost::StepCost,
};
use crate::{engine_info::EngineInfo, error::Error, parts::ReloadModel};

/// The model that generates, and what its steps need.
pub(super) struct ModelRunner {
    pub(super) target: Box<dyn Model>,
    is_profiled: bool, // the target
    pub(super) info: EngineInfo,
    pub(super) draft: Option<DraftModelRunner>,
    pub(super) device: DeviceState,
    pub(super) outputs: StepOutputs,
    pub(super) masks: MaskWorker,
    pub(super) step_cost: StepCost,
    pub(super) fingerprint: Option<[u8; 32]>, // of the model, once it was requested
    pub(super) is_pooling: bool,              // in the step under way
}

/// The device of a model, which may be lost and come back.
#[derive(Default)]
pub(super) struct DeviceState {
    pub(super) reload: Option<Box<dyn ReloadModel>>,
    pub(super) is_lost: bool,     // and the model was not reloaded
    pub(super) is_reloaded: bool, // and no token has come since
}

impl ModelRunner {
    pub(super) fn new(target: Box<dyn Model>, info: EngineInfo) -> Self {
        Self {
            target,
            is_profiled: false,
            info,
            draft: None,
            device: DeviceState::default(),
            outputs: StepOutputs::default(),
            masks: MaskWorker::default(),
            step_cost: StepCost::default(),
            fingerprint: None,
            is_pooling: false,
        }
    }

    /// Another target, which is not profiled.
    pub(super) fn replace_target(&mut self, target: Box<dyn Model>) {
        (self.target, self.is_profiled) = (target, false);
    }

    pub(super) fn is_profiled(&self) -> bool {
        self.is_profiled
    }

    /// Whether the next step is timed.
    pub(super) fn set_profiled(&mut self, is_profiled: bool) {
        if is_profiled != self.is_profiled {
            self.target.set_profiled(is_profiled);
            self.is_profiled = is_profiled;
        }
    }

    /// Bytes that the models keep in memory.
    pub(super) fn memory(&self) -> MemoryUse {
        let mut memory = self.target.memory();
        if let Some(draft) = &self.draft {
            memory.add(&draft.memory());
        }
        memory
    }

    /// What the next step may have.
    pub(super) fn budget(&mut self) -> Budget<'_> {
        Budget {
            max_rows: self.target.max_rows(),
            max_multi_steps: self.target.max_multi_steps(),
            step_cost: &self.step_cost,
            is_pooling: &mut self.is_pooling,
        }
    }

    /// Makes a step. Masks that are left are computed while a device has it.
    pub(super) async fn forward(
        &mut self,
        plan: &StepPlan,
        pool: &mut PagedCache,
    ) -> Result<(), Error> {
        let StepOutputs { rows, argmax, head } = &mut self.outputs;
        head.rows.clear();
        let mut step = match plan.multi_step {
            Some(steps) => self.target.run_multi_step(&plan.batch, pool, steps, argmax),
            None => self.target.forward(&plan.batch, pool, rows),
        };
        match poll!(&mut step) {
            Poll::Ready(result) => result?,
            Poll::Pending => {
                self.masks.compute_left();
                step.await?;
            }
        }
        Ok(())
    }

    /// Makes the head run alone for rows of the last step, ascending.
    pub(super) async fn run_head(
        &mut self,
        rows: impl Iterator<Item = usize>,
        vocabulary: usize,
    ) -> Result<(), Error> {
        let HeadOutputs { rows: of, logits } = &mut self.outputs.head;
        of.clear();
        of.extend(rows);
        of.dedup();
        self.target.head_logits(of, logits).await?;
        check_head(logits, of.len(), vocabulary)
    }

    /// Gives back the memory of blocks that nobody has, and of steps.
    pub(super) async fn shrink(&mut self, pool: &mut PagedCache) -> Result<(), Error> {
        pool.compact();
        self.target.shrink(pool).await?;
        self.outputs = StepOutputs::default();
        Ok(())
    }
}

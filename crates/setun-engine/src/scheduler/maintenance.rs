//! Maintenance between steps: metrics, sessions, memory.

use std::collections::VecDeque;

use setun_model::{Batch, ModelError, RequestedOutput};

use super::{Scheduler, check_outputs::check_outputs, release_memory::reply_released};
use crate::{
    command::MaintenanceTask,
    error::Error,
    saved_session::{Saved, digest},
};

/// Tokens whose logits tell a model from others.
const PROBE_TOKENS: u32 = 8;

pub(super) type MaintenanceQueue = VecDeque<MaintenanceTask>;

impl Scheduler {
    /// Fails where the model has failed, so that nothing in its cache is sound.
    pub(super) async fn run_maintenance(&mut self) -> Result<(), Error> {
        while let Some(task) = self.maintenance.pop_front() {
            match task {
                MaintenanceTask::Metrics(reply) => {
                    let _ = reply.send(self.current_metrics().clone());
                }
                MaintenanceTask::Save { tokens, reply } => {
                    let _ = reply.send(self.save(tokens).await);
                }
                MaintenanceTask::Restore { saved, reply } => {
                    let _ = reply.send(self.restore(&saved).await);
                }
                MaintenanceTask::ReleaseMemory { pressure, reply } => {
                    reply_released(self.release_memory(pressure).await, reply)?;
                }
                MaintenanceTask::LimitCache { bytes, reply } => {
                    reply_released(self.limit_cache(bytes).await, reply)?;
                }
            }
        }
        self.poll_monitor().await
    }

    async fn save(&mut self, tokens: Vec<u32>) -> Result<Saved, Error> {
        let fingerprint = self.fingerprint().await?;
        // Held, so that they stay while they are read.
        let kv_slot = self.cache.create_from(&tokens);
        let held = self.cache.blocks(kv_slot)?.to_vec();
        let block_bytes = self.model.block_bytes();
        let mut blocks = vec![0; held.len() * block_bytes];
        let is_read = self.model.read_blocks(&held, &mut blocks).await;
        self.cache.remove(kv_slot);
        if !is_read? {
            blocks.clear();
        }
        let block_positions = self.cache.block_positions();
        Ok(Saved { fingerprint, tokens, block_positions, block_bytes, blocks })
    }

    /// What is there already, or finds no room, is left out.
    async fn restore(&mut self, saved: &Saved) -> Result<(), Error> {
        let positions = saved.count() * saved.block_positions;
        let tokens = &saved.tokens[..positions];
        let (block_positions, block_bytes) =
            (self.cache.block_positions(), self.model.block_bytes());
        let is_alike = (saved.block_positions, saved.block_bytes) == (block_positions, block_bytes);
        let is_known = self.cache.found(&saved.tokens).0 >= saved.count();
        if !is_alike || is_known || saved.fingerprint != self.fingerprint().await? {
            return Ok(());
        }
        let kv_slot = self.cache.create();
        let restored = self.fill(kv_slot, positions, &saved.blocks);
        if matches!(restored, Ok(true)) {
            self.cache.record_prefix(kv_slot, tokens)?;
        }
        self.cache.remove(kv_slot);
        match restored {
            Err(Error::Model(ModelError::CacheFull { .. })) => Ok(()),
            restored => restored.map(drop),
        }
    }

    fn fill(
        &mut self,
        kv_slot: setun_model::SequenceId,
        positions: usize,
        data: &[u8],
    ) -> Result<bool, Error> {
        self.cache.extend(kv_slot, positions)?;
        let blocks = self.cache.blocks(kv_slot)?.to_vec();
        Ok(self.model.write_blocks(self.cache.high_water_blocks(), &blocks, data)?)
    }

    /// A number for what the model computes: whoever gives the same logits for some tokens, bit
    /// for bit, has the same weights and computes alike.
    async fn fingerprint(&mut self) -> Result<[u8; 32], Error> {
        if let Some(fingerprint) = self.fingerprint {
            return Ok(fingerprint);
        }
        let vocabulary = u32::try_from(self.model.vocab_size()).unwrap_or(u32::MAX);
        let tokens: Vec<u32> = (1..=PROBE_TOKENS).map(|token| token % vocabulary).collect();
        let tokens = &tokens[..tokens.len().min(self.model.context_length())];
        let kv_slot = self.cache.create();
        while let Err(error) = self.cache.extend(kv_slot, tokens.len()) {
            let Some(preemption_victim) = self.preemption_victim(|_| true) else {
                self.cache.remove(kv_slot);
                return Err(error.into());
            };
            self.preempt(preemption_victim);
        }
        let mut batch = Batch::default();
        batch.push_run(kv_slot, 0, tokens, RequestedOutput::Logits);
        let result = self.model.forward(&batch, &mut self.cache, &mut self.outputs).await;
        self.cache.remove(kv_slot);
        result?;
        check_outputs(&batch, &self.outputs, self.model.vocab_size())?;
        let bytes: Vec<u8> =
            self.outputs.logits().iter().flat_map(|logit| logit.to_le_bytes()).collect();
        Ok(*self.fingerprint.insert(digest(&bytes)))
    }
}

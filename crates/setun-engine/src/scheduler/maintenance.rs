//! Maintenance between steps: metrics, sessions, memory.

use setun_model::{Batch, CacheSalt, ModelError, RequestedOutput, SequenceId};
use setun_ops::{BlockId, HAS_RECURRENT};

use super::{
    Scheduler, check_outputs::check_outputs, release_memory::reply_released,
    running::preemption_victim,
};
use crate::{
    command::MaintenanceTask,
    error::Error,
    saved_session::{Saved, SavedBytes, digest, with_capacity},
};

/// Tokens whose logits identify a model.
const PROBE_TOKENS: u32 = 8;

impl Scheduler {
    /// Fails where the model has failed, so that nothing in its cache is sound.
    pub(super) async fn run_maintenance(&mut self) -> Result<(), Error> {
        while let Some(task) = self.queue.maintenance.pop_front() {
            match task {
                MaintenanceTask::Metrics(reply) => {
                    self.publish();
                    let _ = reply.send(self.stats.metrics.clone());
                }
                MaintenanceTask::Save { salt, tokens, reply } => {
                    let _ = reply.send(self.save(salt.as_ref(), tokens).await);
                }
                MaintenanceTask::Restore { salt, saved, reply } => {
                    let _ = reply.send(self.restore(salt.as_ref(), &saved).await);
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

    async fn save(&mut self, salt: Option<&CacheSalt>, tokens: Vec<u32>) -> Result<Saved, Error> {
        let fingerprint = self.fingerprint().await?;
        // Held, so that they stay while they are read.
        let kv_slot = self.kv.pool.create_from(salt, &tokens);
        let held = self.kv.pool.blocks(kv_slot)?.to_vec();
        let block_bytes = self.model.target.block_bytes();
        let blocks = self.read_blocks(&held, block_bytes).await;
        let is_given = blocks.as_ref().is_ok_and(|blocks| !blocks.is_empty());
        let state = if is_given { self.read_state(kv_slot).await } else { Ok(vec![]) };
        self.kv.pool.remove(kv_slot);
        let (block_positions, blocks, state) = (self.kv.pool.block_positions(), blocks?, state?);
        Ok(Saved { fingerprint, tokens, block_positions, block_bytes, blocks, state })
    }

    /// Keys and values of blocks; nothing where the device cannot give them.
    async fn read_blocks(
        &mut self,
        blocks: &[BlockId],
        block_bytes: usize,
    ) -> Result<Vec<u8>, Error> {
        let bytes = blocks.len() * block_bytes;
        let mut values = with_capacity(bytes)?;
        values.resize(bytes, 0);
        if !self.model.target.read_blocks(blocks, &mut values).await? {
            values.clear();
        }
        Ok(values)
    }

    /// The recurrent state of a sequence; nothing where it has none.
    async fn read_state(&mut self, kv_slot: SequenceId) -> Result<Vec<u8>, Error> {
        let state = self.kv.pool.state(kv_slot)?.filter(|_| HAS_RECURRENT);
        let Some((state, _)) = state else { return Ok(vec![]) };
        let bytes = self.model.target.state_bytes();
        let mut values = with_capacity(bytes)?;
        values.resize(bytes, 0);
        self.model.target.read_states(&[state], &mut values).await?;
        Ok(values)
    }

    /// What is there already, finds no room, or turns out to be damaged is left out.
    async fn restore(&mut self, salt: Option<&CacheSalt>, saved: &SavedBytes) -> Result<(), Error> {
        let positions = saved.count() * saved.block_positions;
        let tokens = &saved.tokens[..positions];
        let (block_positions, block_bytes) =
            (self.kv.pool.block_positions(), self.model.target.block_bytes());
        let state_bytes = if positions == 0 { 0 } else { self.model.target.state_bytes() };
        let is_alike = (saved.block_positions, saved.block_bytes) == (block_positions, block_bytes)
            && saved.state().len() == state_bytes;
        let is_known = self.kv.pool.found(salt, &saved.tokens).0 >= saved.count();
        if !is_alike || is_known || saved.fingerprint != self.fingerprint().await? {
            return Ok(());
        }
        let kv_slot = self.kv.pool.create_from(salt, &[]);
        let restored = self.fill(kv_slot, positions, saved).await;
        // The hash is computed beside the filling; until it is known, no other sequence sees the blocks.
        if matches!(restored, Ok(true)) && saved.is_whole() {
            self.kv.pool.record_prefix(kv_slot, tokens)?;
        }
        self.kv.pool.remove(kv_slot);
        match restored {
            Err(Error::Model(ModelError::CacheFull { .. })) => Ok(()),
            restored => restored.map(drop),
        }
    }

    async fn fill(
        &mut self,
        kv_slot: SequenceId,
        positions: usize,
        saved: &SavedBytes,
    ) -> Result<bool, Error> {
        self.extend(kv_slot, positions).await?;
        let blocks = self.kv.pool.blocks(kv_slot)?.to_vec();
        let high_water = self.kv.pool.high_water_blocks();
        let is_taken = self.model.target.write_blocks(high_water, &blocks, saved.blocks())?;
        if is_taken && let Some(state) = self.kv.pool.restore_state(kv_slot)? {
            let high_water = self.kv.pool.high_water_states();
            self.model.target.write_states(high_water, &[state], saved.state())?;
        }
        Ok(is_taken)
    }

    /// Reserves positions for a slot, and memory.
    async fn extend(&mut self, kv_slot: SequenceId, positions: usize) -> Result<(), Error> {
        self.kv.lacking = self.kv.pool.lacks_memory(kv_slot, positions)?;
        self.compact_for_lacking().await?;
        Ok(self.kv.pool.extend(kv_slot, positions)?)
    }

    /// A number for what the model computes: whoever gives the same logits for some tokens, bit
    /// for bit, has the same weights and computes alike.
    async fn fingerprint(&mut self) -> Result<[u8; 32], Error> {
        if let Some(fingerprint) = self.model.fingerprint {
            return Ok(fingerprint);
        }
        let vocabulary = u32::try_from(self.model.target.vocab_size()).unwrap_or(u32::MAX);
        let tokens: Vec<u32> = (1..=PROBE_TOKENS).map(|token| token % vocabulary).collect();
        let tokens = &tokens[..tokens.len().min(self.model.target.context_length())];
        let kv_slot = self.kv.pool.create();
        while let Err(error) = self.extend(kv_slot, tokens.len()).await {
            let victim = preemption_victim(&self.running, |_| true);
            let (Some(victim), Error::Model(ModelError::CacheFull { .. })) = (victim, &error)
            else {
                self.kv.pool.remove(kv_slot);
                return Err(error);
            };
            self.preempt(victim);
        }
        let mut batch = Batch::default();
        batch.push_run(kv_slot, 0, tokens, RequestedOutput::Logits);
        let result = self
            .model
            .target
            .forward(&batch, &mut self.kv.pool, &mut self.model.outputs.rows)
            .await;
        self.kv.pool.remove(kv_slot);
        result?;
        check_outputs(&batch, &self.model.outputs.rows, self.model.target.vocab_size())?;
        let bytes: Vec<u8> =
            self.model.outputs.rows.logits().iter().flat_map(|logit| logit.to_le_bytes()).collect();
        Ok(*self.model.fingerprint.insert(digest(&bytes)))
    }
}

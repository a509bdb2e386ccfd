//! A batch as the inputs of a step.

use std::collections::HashMap;

use setun_ops::{BatchInputs, HAS_RECURRENT, OpsError};

use crate::{
    batch::{Batch, BatchRow, RequestedOutput, SequenceId},
    cache::PagedCache,
    error::ModelError,
    options::MAX_ROWS,
};

/// The inputs of a step. Their memory is kept from step to step, but for the block tables of
/// sequences beyond a smaller batch.
#[derive(Debug, Default)]
pub(crate) struct StepInputs {
    pub(crate) inputs: BatchInputs,
    /// Of the requested rows: all or none of them.
    pub(crate) wants_states: bool,
    slots: HashMap<SequenceId, Slot>,
}

/// Where a sequence's block table is, and its first and last position so far.
#[derive(Clone, Copy, Debug)]
struct Slot {
    table: usize,
    first: usize,
    last: usize,
}

impl StepInputs {
    /// The inputs of a batch, with the requests of those rows that make one, for this many steps
    /// that follow each other.
    pub(crate) fn fill(
        &mut self,
        batch: &Batch,
        cache: &mut PagedCache,
        steps: usize,
    ) -> Result<(), ModelError> {
        cache.step_failed(); // one that was begun and has not run
        let found = batch.rows.len();
        if found > MAX_ROWS {
            return Err(ModelError::Rows { found, limit: MAX_ROWS });
        }
        // The memory of the block tables is kept.
        let block_tables = std::mem::take(&mut self.inputs.block_tables);
        self.inputs.clear();
        self.inputs.block_tables = block_tables;
        self.slots.clear();
        let mut states = 0;
        for (index, row) in batch.rows.iter().enumerate() {
            let table = self.table(index, row, cache, steps)?;
            let inputs = &mut self.inputs;
            inputs.tokens.push(row.token);
            inputs.positions.push(narrow("position", row.position)?);
            inputs.slots.push(narrow("slot", table)?);
            if row.output != RequestedOutput::Nothing {
                inputs.wanted.push(narrow("row", index)?);
            }
            match &row.output {
                RequestedOutput::TopLogits(request) => inputs.top_logits.push(request.clone()),
                RequestedOutput::Argmax(request) => inputs.argmax.push(request.clone()),
                RequestedOutput::HiddenState => states += 1,
                RequestedOutput::Nothing | RequestedOutput::Logits => {}
            }
        }
        let wanted = self.inputs.wanted.len();
        if states > 0 && states < wanted {
            return Err(ModelError::MixedOutputs { states, wanted });
        }
        self.wants_states = states > 0;
        self.inputs.block_tables.truncate(self.slots.len());
        if HAS_RECURRENT && cache.state_blocks() > 0 {
            self.begin_states(cache)?;
        }
        Ok(())
    }

    /// What is done with the recurrent state of each sequence.
    fn begin_states(&mut self, cache: &mut PagedCache) -> Result<(), ModelError> {
        let mut slots: Vec<_> =
            self.slots.iter().map(|(id, slot)| (slot.table, *id, *slot)).collect();
        slots.sort_unstable_by_key(|(table, ..)| *table);
        for (_, sequence, slot) in slots {
            let states = cache.begin_rows(sequence, (slot.first, slot.last + 1))?;
            self.inputs.states.push(states);
        }
        Ok(())
    }

    /// Checks a row's place, and finds or makes the block table of its sequence.
    fn table(
        &mut self,
        index: usize,
        row: &BatchRow,
        cache: &PagedCache,
        steps: usize,
    ) -> Result<usize, ModelError> {
        let (first, len) = (row.position, cache.len(row.sequence)?);
        let last = first.saturating_add(steps.max(1) - 1);
        if last >= len {
            return Err(ModelError::Position { row: index, position: last, len });
        }
        let blocks = cache.blocks(row.sequence)?;
        let written = first / cache.block_positions()..=last / cache.block_positions();
        if blocks[written].iter().any(|&block| cache.is_shared(block)) {
            return Err(ModelError::SharedBlock { row: index, position: row.position });
        }
        let (table, first) = match self.slots.get(&row.sequence) {
            Some(slot) if row.position > slot.last => (slot.table, slot.first),
            Some(_) => return Err(ModelError::RowOrder { row: index }),
            None => {
                let (table, tables) = (self.slots.len(), &mut self.inputs.block_tables);
                if table == tables.len() {
                    tables.push(vec![]);
                }
                tables[table].clear();
                tables[table].extend_from_slice(blocks);
                (table, row.position)
            }
        };
        self.slots.insert(row.sequence, Slot { table, first, last: row.position });
        Ok(table)
    }
}

fn narrow(what: &'static str, found: usize) -> Result<u32, ModelError> {
    let expected = u32::MAX as usize;
    u32::try_from(found).map_err(|_| OpsError::Inputs { what, expected, found }.into())
}

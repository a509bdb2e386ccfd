//! A batch as the inputs of a step.

use std::collections::HashMap;

use setun_ops::{BatchInputs, OpsError};

use crate::{
    batch::{Batch, BatchRow, Wants},
    cache::{PagedCache, SequenceId},
    error::ModelError,
    transformer::MAX_ROWS,
};

/// The inputs of a step. Their memory is kept from step to step, but for the block tables of
/// sequences beyond a smaller batch.
#[derive(Debug, Default)]
pub(crate) struct StepInputs {
    pub(crate) inputs: BatchInputs,
    slots: HashMap<SequenceId, Slot>,
}

/// Where a sequence's block table is, and its last position so far.
#[derive(Clone, Copy, Debug)]
struct Slot {
    table: usize,
    last: usize,
}

impl StepInputs {
    /// The inputs of a batch, with the requests of those rows that make one.
    pub(crate) fn fill(&mut self, batch: &Batch, cache: &PagedCache) -> Result<(), ModelError> {
        let found = batch.rows.len();
        if found > MAX_ROWS {
            return Err(ModelError::Rows { found, limit: MAX_ROWS });
        }
        let BatchInputs { tokens, positions, slots, block_tables: _, wanted, best } =
            &mut self.inputs;
        for numbers in [tokens, positions, slots, wanted] {
            numbers.clear();
        }
        best.clear();
        self.slots.clear();
        for (index, row) in batch.rows.iter().enumerate() {
            let table = self.table(index, row, cache)?;
            let inputs = &mut self.inputs;
            inputs.tokens.push(row.token);
            inputs.positions.push(narrow("position", row.position)?);
            inputs.slots.push(narrow("slot", table)?);
            if row.wants != Wants::Nothing {
                inputs.wanted.push(narrow("row", index)?);
            }
            if let Wants::Best(request) = &row.wants {
                inputs.best.push(request.clone());
            }
        }
        self.inputs.block_tables.truncate(self.slots.len());
        Ok(())
    }

    /// Checks a row's place, and finds or makes the block table of its sequence.
    fn table(
        &mut self,
        index: usize,
        row: &BatchRow,
        cache: &PagedCache,
    ) -> Result<usize, ModelError> {
        let len = cache.len(row.sequence)?;
        if row.position >= len {
            return Err(ModelError::Position { row: index, position: row.position, len });
        }
        let blocks = cache.blocks(row.sequence)?;
        if cache.is_shared(blocks[row.position / cache.block_positions()]) {
            return Err(ModelError::SharedBlock { row: index, position: row.position });
        }
        let table = match self.slots.get(&row.sequence) {
            Some(slot) if row.position > slot.last => slot.table,
            Some(_) => return Err(ModelError::RowOrder { row: index }),
            None => {
                let (table, tables) = (self.slots.len(), &mut self.inputs.block_tables);
                if table == tables.len() {
                    tables.push(vec![]);
                }
                tables[table].clear();
                tables[table].extend_from_slice(blocks);
                table
            }
        };
        self.slots.insert(row.sequence, Slot { table, last: row.position });
        Ok(table)
    }
}

fn narrow(what: &'static str, found: usize) -> Result<u32, ModelError> {
    let expected = u32::MAX as usize;
    u32::try_from(found).map_err(|_| OpsError::Inputs { what, expected, found }.into())
}

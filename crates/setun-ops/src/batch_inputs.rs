//! Inputs that change from step to step: tokens, positions, sequences, block tables.

use crate::{
    HAS_RECURRENT,
    argmax::{self, ArgmaxRequest},
    cache::BlockId,
    error::OpsError,
    op::ArgmaxCapacity,
    recurrent::{RecurrentSpec, StateRows, check_states},
    top_logits::TopLogitsRequest,
};

/// The inputs of one step. All prefill, decode, ragged and continuous batches are this.
///
/// Rows of one slot stand in ascending order of position; a row sees the positions up to its
/// own, those appended by earlier rows of the same step included. No two rows write to the same
/// place of the cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchInputs {
    /// Token of each row, `[rows]`.
    pub tokens: Vec<u32>,
    /// Absolute position of each row in its sequence, `[rows]`.
    pub positions: Vec<u32>,
    /// Index into `block_tables` of each row, `[rows]`.
    pub slots: Vec<u32>,
    /// The cache blocks of each sequence, in order of position.
    pub block_tables: Vec<Vec<BlockId>>,
    /// What is done with the recurrent state of each sequence; empty where the plan has none.
    pub states: Vec<StateRows>,
    /// Rows whose logits are requested, ascending.
    pub wanted: Vec<u32>,
    /// What each requested row asks of the plan's [`Op::TopLogits`](crate::Op::TopLogits),
    /// `[wanted]`; empty where the plan has none.
    pub top_logits: Vec<TopLogitsRequest>,
    /// How each requested row chooses by the plan's [`Op::Argmax`](crate::Op::Argmax), `[wanted]`;
    /// empty where the plan has none.
    pub argmax: Vec<ArgmaxRequest>,
}

impl BatchInputs {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.tokens.len()
    }

    /// Removes all rows; their memory is kept.
    pub fn clear(&mut self) {
        let Self { tokens, positions, slots, block_tables, states, wanted, top_logits, argmax } =
            self;
        for numbers in [tokens, positions, slots, wanted] {
            numbers.clear();
        }
        block_tables.clear();
        states.clear();
        top_logits.clear();
        argmax.clear();
    }

    /// Makes these the inputs of the step that follows: each requested row takes in the token that
    /// it chose, which is touched from now on, at the next position. A row that chose
    /// [none](crate::argmax::NONE) keeps its token.
    ///
    /// # Panics
    ///
    /// If there are fewer chosen tokens than requested rows.
    pub fn advance(&mut self, chosen: &[u32]) {
        for (index, &row) in self.wanted.iter().enumerate() {
            let (row, token) = (row as usize, chosen[index]);
            if token != argmax::NONE {
                self.tokens[row] = token;
            }
            self.positions[row] += 1;
            if let Some(request) = self.argmax.get_mut(index) {
                request.touch(token);
            }
        }
    }

    /// Checks every index, so that a backend may trust them.
    ///
    /// # Errors
    ///
    /// If lengths disagree, or a token, position, slot, block or requested row is out of range.
    pub fn check(&self, limits: &InputLimits) -> Result<(), OpsError> {
        let rows = self.rows();
        bound("rows", rows, limits.rows + 1)?;
        bound("requested rows", self.wanted.len(), limits.wanted + 1)?;
        equal("positions", self.positions.len(), rows)?;
        equal("slots", self.slots.len(), rows)?;
        for row in 0..rows {
            bound("token", self.tokens[row] as usize, limits.vocab)?;
            let position = self.positions[row] as usize;
            bound("position", position, limits.positions)?;
            let slot = self.slots[row] as usize;
            bound("slot", slot, self.block_tables.len())?;
            let covered = self.block_tables[slot].len() * limits.block_positions;
            bound("position in the block table", position, covered)?;
        }
        for block in self.block_tables.iter().flatten() {
            bound("cache block", block.0 as usize, limits.blocks)?;
        }
        for pair in self.wanted.windows(2) {
            bound("requested row (ascending)", pair[0] as usize, pair[1] as usize)?;
        }
        self.wanted.iter().try_for_each(|&row| bound("requested row", row as usize, rows))?;
        self.check_top_logits(limits.top_logits)?;
        self.check_argmax(limits.argmax)?;
        self.check_writes(limits.block_positions)?;
        self.check_states(limits.recurrent.as_ref())
    }

    /// Rows of a sequence with a recurrent state are neighbours, at consecutive positions.
    fn check_states(&self, limits: Option<&(RecurrentSpec, usize)>) -> Result<(), OpsError> {
        let Some((spec, states)) = limits.filter(|_| HAS_RECURRENT) else { return Ok(()) };
        equal("states", self.states.len(), self.block_tables.len())?;
        let mut seen = vec![false; self.states.len()];
        for run in
            (0..self.rows()).collect::<Vec<_>>().chunk_by(|a, b| self.slots[*a] == self.slots[*b])
        {
            let (first, slot) = (self.positions[run[0]] as usize, self.slots[run[0]] as usize);
            for (position, &row) in (first..).zip(run) {
                equal(
                    "position after another of its slot",
                    self.positions[row] as usize,
                    position,
                )?;
            }
            equal("runs of rows of a slot", usize::from(seen[slot]), 0)?;
            seen[slot] = true;
            self.states[slot].check(first..first + run.len(), spec, *states)?;
        }
        check_states(&self.states)
    }

    /// Each requested row names tokens that are there and fit its row of the result.
    fn check_top_logits(&self, limits: Option<(usize, usize)>) -> Result<(), OpsError> {
        let Some((vocab, capacity)) = limits else {
            return equal("requests of a plan without `top_logits`", self.top_logits.len(), 0);
        };
        equal("requests", self.top_logits.len(), self.wanted.len())?;
        for TopLogitsRequest { k, within, noise, top, sum, touched } in &self.top_logits {
            bound("touched tokens of a request", touched.len(), vocab)?;
            for pair in touched.windows(2) {
                bound("touched token (ascending)", pair[0] as usize, pair[1] as usize)?;
            }
            touched.iter().try_for_each(|&token| bound("touched token", token as usize, vocab))?;
            let room = capacity.saturating_sub(touched.len() + usize::from(*sum));
            let most = (vocab - touched.len()).min(room);
            if *k == 0 || *k > most {
                let what = "tokens beside the touched ones (at least 1)";
                return Err(OpsError::Inputs { what, expected: most, found: *k });
            }
            let most = if noise.is_some() { most - k } else { 0 };
            if *top > most || *sum && *top == 0 {
                let what = "tokens by logit beside those by noisy score (some before a sum)";
                return Err(OpsError::Inputs { what, expected: most, found: *top });
            }
            if let Some(found) = within.filter(|within| within.is_nan() || *within < 0.0) {
                return Err(OpsError::Within { found });
            }
            if let Some(noisy) = noise.filter(|noisy| within.is_some() || !noisy.is_valid()) {
                return Err(OpsError::Temperature { found: noisy.temperature });
            }
        }
        Ok(())
    }

    fn check_argmax(&self, limits: Option<(usize, ArgmaxCapacity)>) -> Result<(), OpsError> {
        let Some((vocab, room)) = limits else {
            return equal("choices of a plan without `argmax`", self.argmax.len(), 0);
        };
        equal("choices", self.argmax.len(), self.wanted.len())?;
        self.argmax.iter().try_for_each(|request| request.check(vocab, room))
    }

    /// Checks that these inputs, which have passed [`check`](Self::check), can be followed until
    /// there are this many steps: all rows are requested, each of a sequence of its own that has
    /// room.
    ///
    /// # Errors
    ///
    /// If it is not so.
    pub fn check_multi_step(&self, limits: &InputLimits, steps: usize) -> Result<(), OpsError> {
        equal("requested rows of a multi-step", self.wanted.len(), self.rows())?;
        // Which states a step reads and writes comes from the host.
        equal("recurrent states of a multi-step", self.states.len(), 0)?;
        let Some((_, room)) = limits.argmax else {
            return equal("steps without `argmax`", steps, 1);
        };
        for request in &self.argmax {
            let needed = request.room(steps).touched;
            bound("touched tokens of a multi-step", needed, room.touched + 1)?;
        }
        let mut places = vec![];
        for (&position, &slot) in self.positions.iter().zip(&self.slots) {
            let (first, table) = (position as usize, &self.block_tables[slot as usize]);
            let positions = (table.len() * limits.block_positions).min(limits.positions);
            bound("position of a multi-step", first + steps - 1, positions)?;
            places.extend((first..first + steps).map(|position| {
                let block = table[position / limits.block_positions];
                (block, position % limits.block_positions)
            }));
        }
        places.sort_unstable();
        let written = places.len();
        places.dedup();
        equal("places that a multi-step writes to", places.len(), written)
    }

    /// No two rows write to one place of the cache, and rows of a slot ascend.
    fn check_writes(&self, block_positions: usize) -> Result<(), OpsError> {
        let place = |row: usize| {
            let position = self.positions[row] as usize;
            let block = self.block_tables[self.slots[row] as usize][position / block_positions];
            (block, position % block_positions)
        };
        for row in 1..self.rows() {
            let written = place(row);
            for before in 0..row {
                if place(before) == written {
                    return Err(OpsError::Overlap { first: before, second: row });
                }
                if self.slots[before] == self.slots[row] {
                    let limit = self.positions[row] as usize;
                    bound(
                        "position before another of its slot",
                        self.positions[before] as usize,
                        limit,
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// The bounds of [`BatchInputs::check`].
#[derive(Clone, Copy, Debug)]
pub struct InputLimits {
    /// Most rows of a step.
    pub rows: usize,
    /// Most requested rows of a step.
    pub wanted: usize,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Positions of the `RoPE` table.
    pub positions: usize,
    /// Blocks of the cache.
    pub blocks: usize,
    /// Positions of a block.
    pub block_positions: usize,
    /// Shape and number of the recurrent states, if the plan has such layers.
    pub recurrent: Option<(RecurrentSpec, usize)>,
    /// Tokens and capacity of [`Op::TopLogits`](crate::Op::TopLogits), if the plan has one.
    pub top_logits: Option<(usize, usize)>,
    /// Tokens and room of [`Op::Argmax`](crate::Op::Argmax), if the plan has one.
    pub argmax: Option<(usize, ArgmaxCapacity)>,
}

fn bound(what: &'static str, found: usize, limit: usize) -> Result<(), OpsError> {
    if found < limit {
        Ok(())
    } else {
        Err(OpsError::Inputs { what, expected: limit.saturating_sub(1), found })
    }
}

fn equal(what: &'static str, found: usize, expected: usize) -> Result<(), OpsError> {
    if found == expected { Ok(()) } else { Err(OpsError::Inputs { what, expected, found }) }
}

//! The inputs of a step as words: `wgsl/parts/step.wgsl` reads them.

use setun_ops::{
    BatchInputs, HAS_RECURRENT, OpsError, Plan, argmax::ArgmaxRequest, numeric::to_u32,
    op::ArgmaxCapacity,
};

/// Words that say where the rest lies.
const HEADER: usize = 14;

/// Words of a choice before its touched tokens.
const CHOICE_HEADER: usize = 4;

/// Words of a sequence with a recurrent state, without the states that are written.
const STATE_WORDS: usize = 6;

/// Most states that a step writes for a sequence.
const MAX_STORED: usize = 4;

/// Where each part of the inputs lies, for all steps of one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepLayout {
    rows: usize,
    wanted: usize,
    table_blocks: usize,
    request_words: usize,
    room: ArgmaxCapacity,
    choice_words: usize,
    /// Most sequences with a recurrent state.
    sequences: usize,
}

impl StepLayout {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (_, positions) = plan.token_and_position_limits();
        // A plan without positions, as tests have them, looks at no block.
        let positions = if positions == usize::MAX { 1 } else { positions };
        let capacity = plan.top_logits_limits().map_or(0, |(_, capacity)| capacity);
        let limits = plan.argmax_limits();
        let room = limits.map_or(ArgmaxCapacity::default(), |(_, room)| room);
        Self {
            rows: plan.rows(),
            wanted: plan.wanted(),
            table_blocks: positions.div_ceil(plan.cache().block_positions),
            request_words: 4 + capacity,
            room,
            choice_words: CHOICE_HEADER + room.touched + 2 * room.biases,
            sequences: plan.cache().recurrent.map_or(0, |_| plan.rows()),
        }
    }

    /// All words of a step.
    pub(crate) fn words(&self) -> usize {
        self.states() + self.sequences * (STATE_WORDS + 2 * MAX_STORED)
    }

    fn states(&self) -> usize {
        self.choices() + self.wanted * self.choice_words
    }

    /// Checks that a step, which has passed the plan's checks, finds room.
    pub(crate) fn check(&self, inputs: &BatchInputs) -> Result<(), OpsError> {
        let most = inputs.states.iter().map(|states| states.stored.len()).max().unwrap_or(0);
        if self.sequences == 0 || most <= MAX_STORED {
            return Ok(());
        }
        let what = "states that a step writes for a sequence, on a GPU";
        Err(OpsError::Inputs { what, expected: MAX_STORED, found: most })
    }

    fn choices(&self) -> usize {
        self.requests() + self.wanted * self.request_words
    }

    fn tables(&self) -> usize {
        HEADER + 3 * self.rows + self.wanted
    }

    fn requests(&self) -> usize {
        self.tables() + self.rows * self.table_blocks
    }

    /// Writes a step, which has been checked, to `words`.
    pub(crate) fn write(&self, inputs: &BatchInputs, words: &mut [u32]) {
        let tokens = HEADER;
        let (positions, slots) = (tokens + self.rows, tokens + 2 * self.rows);
        let wanted = tokens + 3 * self.rows;
        let header = [
            inputs.rows(),
            inputs.wanted.len(),
            tokens,
            positions,
            slots,
            wanted,
            self.tables(),
            self.table_blocks,
            self.requests(),
            self.request_words,
            self.choices(),
            self.choice_words,
            self.states(),
            0, // sequences with a recurrent state
        ];
        words[..HEADER].copy_from_slice(&header.map(to_u32));
        words[tokens..][..inputs.rows()].copy_from_slice(&inputs.tokens);
        words[positions..][..inputs.rows()].copy_from_slice(&inputs.positions);
        words[wanted..][..inputs.wanted.len()].copy_from_slice(&inputs.wanted);
        // More tables may be given than there are rows: those in use become the first.
        let mut used: Vec<u32> = Vec::new();
        for (row, &slot) in inputs.slots.iter().enumerate() {
            let index = used.iter().position(|&known| known == slot).unwrap_or_else(|| {
                used.push(slot);
                used.len() - 1
            });
            words[slots + row] = to_u32(index);
        }
        for (index, &slot) in used.iter().enumerate() {
            let table = &inputs.block_tables[slot as usize];
            let place = &mut words[self.tables() + index * self.table_blocks..];
            for (word, block) in place[..self.table_blocks].iter_mut().zip(table) {
                *word = block.0;
            }
        }
        for (index, request) in inputs.top_logits.iter().enumerate() {
            let place = &mut words[self.requests() + index * self.request_words..];
            let within = request.within.unwrap_or_default();
            let is_bounded = u32::from(request.within.is_some());
            place[..4].copy_from_slice(&[
                to_u32(request.k),
                is_bounded,
                within.to_bits(),
                to_u32(request.touched.len()),
            ]);
            place[4..][..request.touched.len()].copy_from_slice(&request.touched);
        }
        if HAS_RECURRENT && self.sequences > 0 {
            self.write_states(inputs, words);
        }
        for (index, request) in inputs.argmax.iter().enumerate() {
            let place = &mut words[self.choices() + index * self.choice_words..];
            self.write_choice(request, &mut place[..self.choice_words]);
        }
    }

    /// Rows of a sequence are neighbours.
    fn write_states(&self, inputs: &BatchInputs, words: &mut [u32]) {
        let (mut first, mut sequences) = (0, 0);
        for run in inputs.slots.chunk_by(|a, b| a == b) {
            let Some(states) = inputs.states.get(run[0] as usize) else { break };
            let place = self.states() + sequences * STATE_WORDS;
            let list = self.states() + self.sequences * STATE_WORDS + 2 * MAX_STORED * sequences;
            words[place..][..STATE_WORDS].copy_from_slice(&[
                states.loaded.map_or(0, |(id, _)| id.0 + 1),
                states.base(),
                to_u32(first),
                to_u32(run.len()),
                to_u32(states.stored.len()),
                to_u32(list),
            ]);
            let stored = states.stored.iter().flat_map(|&(id, taken)| [id.0, taken]);
            words[list..].iter_mut().zip(stored).for_each(|(word, value)| *word = value);
            first += run.len();
            sequences += 1;
        }
        words[HEADER - 1] = to_u32(sequences);
    }

    fn write_choice(&self, request: &ArgmaxRequest, words: &mut [u32]) {
        let ArgmaxRequest { penalty, touched, biases } = request;
        let (header, rest) = words.split_at_mut(CHOICE_HEADER);
        // The last is how many steps have been made.
        header.copy_from_slice(&[
            penalty.to_bits(),
            to_u32(touched.len()),
            to_u32(biases.len()),
            0,
        ]);
        let (places, rest) = rest.split_at_mut(self.room.touched);
        places[..touched.len()].copy_from_slice(touched);
        let (tokens, values) = rest.split_at_mut(self.room.biases);
        for ((token, value), bias) in tokens.iter_mut().zip(values).zip(biases) {
            (*token, *value) = (bias.0, bias.1.to_bits());
        }
    }
}

//! The inputs of a step as words: `wgsl/parts/step.wgsl` reads them.

use setun_ops::{BatchInputs, Plan, argmax::ArgmaxRequest, numeric::to_u32, op::ArgmaxCapacity};

/// Words that say where the rest lies.
const HEADER: usize = 12;

/// Words of a choice before its touched tokens.
const CHOICE_HEADER: usize = 4;

/// Where each part of the inputs lies, for all steps of one plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepLayout {
    rows: usize,
    wanted: usize,
    table_blocks: usize,
    request_words: usize,
    room: ArgmaxCapacity,
    choice_words: usize,
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
        }
    }

    /// All words of a step.
    pub(crate) fn words(&self) -> usize {
        self.choices() + self.wanted * self.choice_words
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
        for (index, request) in inputs.argmax.iter().enumerate() {
            let place = &mut words[self.choices() + index * self.choice_words..];
            self.write_choice(request, &mut place[..self.choice_words]);
        }
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

//! Operations over tables: embedding, head, the best of it and the choice.

use setun_ops::{BufferId, WeightId, WeightSpec, numeric::to_u32, op::ArgmaxCapacity};

use super::{Lowering, columns};
use crate::{
    kernel::{Kernel, SLICE_TOKENS},
    launch::{Argument, Scratch},
    weight::WeightFormat,
};

impl<B> Lowering<'_, B> {
    pub(super) fn embed(&mut self, table: WeightId, out: BufferId) {
        let WeightFormat::Dense { table: element, stride } = self.form(table) else {
            return; // a checked plan names a table
        };
        let width = self.spec(out).width;
        for (index, (first, tokens)) in self.parts(table).into_iter().enumerate() {
            let shape = [width, stride, first, tokens].map(to_u32).to_vec();
            let arguments = vec![Argument::Weight(table, index), Argument::Buffer(out)];
            self.push(Kernel::Embed(element), shape, arguments, [self.rows(out), 1, 1]);
        }
    }

    pub(super) fn head(&mut self, x: BufferId, table: WeightId, logits: Argument) {
        let WeightFormat::Dense { table: element, stride } = self.form(table) else {
            return;
        };
        let (width, vocab, rows) = (self.spec(x).width, self.vocab(table), self.rows(x));
        let columns = columns(rows);
        for (index, (first, tokens)) in self.parts(table).into_iter().enumerate() {
            let mut shape = [width, stride, first, tokens, vocab].map(to_u32).to_vec();
            shape.push(self.is_wanted(x));
            let arguments = vec![Argument::Weight(table, index), Argument::Buffer(x), logits];
            let grid = [to_u32(tokens).div_ceil(self.tiles.tokens), rows.div_ceil(columns), 1];
            self.push(Kernel::Head { table: element, columns }, shape, arguments, grid);
        }
    }

    pub(super) fn top_logits(&mut self, x: BufferId, table: WeightId, out: BufferId) {
        let (vocab, rows, capacity) = (self.vocab(table), self.rows(x), self.spec(out).width);
        let sorted = capacity.next_power_of_two();
        let logits = self.launches.scratch(Scratch::Logits, 4 * u64::from(rows) * vocab as u64);
        let sorting = self.launches.scratch(Scratch::Sorting, 8 * u64::from(rows) * sorted as u64);
        self.head(x, table, logits);
        let shape = [vocab, capacity, sorted].map(to_u32).to_vec();
        let arguments = vec![logits, sorting, Argument::Buffer(out)];
        self.push(Kernel::TopLogits, shape, arguments, [rows, 1, 1]);
    }

    pub(super) fn argmax(
        &mut self,
        x: BufferId,
        table: WeightId,
        room: ArgmaxCapacity,
        out: BufferId,
    ) {
        let (vocab, rows) = (self.vocab(table), self.rows(x));
        let slices = to_u32(vocab).div_ceil(SLICE_TOKENS);
        let logits = self.launches.scratch(Scratch::Logits, 4 * u64::from(rows) * vocab as u64);
        let bytes = 8 * u64::from(rows) * u64::from(slices);
        let of_slices = self.launches.scratch(Scratch::Sorting, bytes);
        self.head(x, table, logits);
        for (folds, grid) in [(0, [slices, rows, 1]), (1, [rows, 1, 1])] {
            let shape =
                vec![to_u32(vocab), slices, to_u32(room.touched), to_u32(room.biases), folds];
            let arguments = vec![logits, of_slices, Argument::Buffer(out)];
            self.push(Kernel::Argmax, shape, arguments, grid);
        }
    }

    pub(super) fn parts(&self, table: WeightId) -> Vec<(usize, usize)> {
        let parts = &self.weights[table.0 as usize].parts;
        parts.iter().map(|part| (part.first, part.rows)).collect()
    }

    fn vocab(&self, table: WeightId) -> usize {
        match self.plan.weights()[table.0 as usize] {
            WeightSpec::Dense { rows, .. } => rows,
            _ => 0,
        }
    }
}

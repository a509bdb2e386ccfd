//! Matrices of integers with scales by block: those of `MatMulNBits` and `GatherBlockQuantized`.

use std::ops::Range;

use super::{EMBEDDING, EMBEDDING_WEIGHT, Plan, info, node_name};
use crate::{
    dtype::Dtype,
    dtype::FLOATS,
    error::CheckpointError,
    onnx::{
        data_range::DataRange,
        graph::{Initializer, Node},
        item::{Conversion, Item, ZeroPart},
        nbits::{self, IntegerForm},
    },
};

/// Most rows or columns: this many bytes of codes can be counted.
const MAX_SIZE: usize = 1 << 28;

/// A matrix of integers.
pub(super) struct Integers {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) form: IntegerForm,
    groups: usize,
    codes: usize, // this and the next: initialisers
    scales: usize,
    zeros: Option<usize>,
}

/// An input that is to be an initialiser.
struct Input<'a> {
    index: usize,
    what: &'static str,
    types: &'a [Dtype],
    per_row: usize,
}

impl Plan<'_> {
    /// Parameters and inputs of a `MatMulNBits`, checked against each other. A head is a table.
    pub(super) fn check_nbits(
        &self,
        node: &Node,
        is_head: bool,
    ) -> Result<Integers, CheckpointError> {
        let (rows, columns) = (self.size(node, "N", None)?, self.size(node, "K", None)?);
        let bits = match node.int("bits").unwrap_or(4) {
            2 => 2,
            4 if is_head => 4,
            8 if is_head => 8,
            bits => {
                let only = if is_head { "2, 4 and 8 are" } else { "2 is" };
                let what = format!("its `bits` is {bits}, only {only} supported");
                return Err(self.refuse(node, what));
            }
        };
        let block = self.block(node, None)?;
        if node.int("weight_prepacked").unwrap_or(0) != 0 {
            return Err(self.refuse(node, "its weight is packed for one device"));
        }
        if node.input(4).is_some_and(|name| !self.is_empty(name)) {
            return Err(self.refuse(node, "its columns are regrouped (`g_idx`)"));
        }
        let groups = columns.div_ceil(block);
        let row = groups * block * bits / 8;
        let zero = 1 << (bits - 1);
        let form = IntegerForm { bits, is_signed: false, block, row, zero };
        let codes = Input { index: 1, what: "codes", types: &[Dtype::U8], per_row: row };
        let codes = self.required(node, rows, &codes)?;
        let scales = Input { index: 2, what: "scales", types: &FLOATS, per_row: groups };
        let scales = self.required(node, rows, &scales)?;
        let zeros = self.zeros(node, rows, groups, bits)?;
        Ok(Integers { rows, columns, form, groups, codes, scales, zeros })
    }

    /// The embedding, where an operation takes rows of a table of integers.
    pub(super) fn add_quantized_embedding(&mut self, node: &Node) -> Result<(), CheckpointError> {
        let index = node.input(0).and_then(|name| self.graph.flat_source(name));
        let index = index.ok_or_else(|| self.refuse(node, "its table is no initialiser"))?;
        let name = &self.graph.initializers[index].name;
        if !node.name.contains(EMBEDDING) && !name.contains(EMBEDDING) {
            let what = format!("it takes rows of `{name}`, which are not known to be embeddings");
            return Err(self.refuse(node, what));
        }
        let stored = self.check_gather(node, index)?;
        self.add_integers(node, EMBEDDING_WEIGHT, &stored)
    }

    /// Parameters and inputs of a `GatherBlockQuantized`, checked against each other.
    fn check_gather(&self, node: &Node, codes: usize) -> Result<Integers, CheckpointError> {
        let axis = |name: &str, default| node.int(name).unwrap_or(default);
        let axes = (axis("gather_axis", 0), axis("quantize_axis", 1));
        if !matches!(axes, (0 | -2, 1 | -1)) {
            let what = format!(
                "it gathers along axis {} of a table quantized along {}, only 0 and 1 are supported",
                axes.0, axes.1
            );
            return Err(self.refuse(node, what));
        }
        let block = self.block(node, Some(128))?;
        let bits = match node.int("bits").unwrap_or(4) {
            2 => 2,
            4 => 4,
            8 => 8,
            bits => return Err(self.refuse(node, format!("its `bits` is {bits}"))),
        };
        let found = &self.graph.initializers[codes];
        let nibbles = found.nibbles();
        let in_byte = match (found.dtype(), nibbles) {
            (Some(Dtype::U8), _) => 1,
            (_, Some(_)) if bits == 4 => 2,
            _ => {
                let what = format!("its table has element type {}", found.data_type);
                return Err(self.refuse(node, what));
            }
        };
        let rows = found.shape.first().copied().unwrap_or(0);
        let row = found.elements().checked_div(rows * in_byte).unwrap_or(0);
        let is_whole = found.shape.len() > 1 && rows * row * in_byte == found.elements();
        if !is_whole || row == 0 || rows > MAX_SIZE || row > MAX_SIZE {
            let what = format!("its table has shape {:?}", found.shape);
            return Err(self.refuse(node, what));
        }
        let columns = row * 8 / bits;
        let groups = columns.div_ceil(block);
        let is_signed = nibbles == Some(true);
        let zero = if nibbles.is_some() { 0 } else { 1 << (bits - 1) };
        let form = IntegerForm { bits, is_signed, block, row, zero };
        let scales = Input { index: 2, what: "scales", types: &FLOATS, per_row: groups };
        let scales = self.required(node, rows, &scales)?;
        let zeros = match (nibbles, node.input(3)) {
            (None, _) => self.zeros(node, rows, groups, bits)?,
            (Some(_), None) => None,
            (Some(is_signed), Some(name)) => {
                let zeros = self.graph.flat_source(name).filter(|&index| {
                    let zeros = &self.graph.initializers[index];
                    zeros.nibbles() == Some(is_signed) && rows_of(zeros, rows, groups)
                });
                let zeros = zeros.ok_or_else(|| {
                    self.refuse(node, "its zero points are not of the type and shape of its table")
                })?;
                Some(zeros)
            }
        };
        Ok(Integers { rows, columns, form, groups, codes, scales, zeros })
    }

    /// A table of integers: ternary where they have two bits, else floats of the type that the
    /// scales have.
    pub(super) fn add_integers(
        &mut self,
        node: &Node,
        name: &str,
        stored: &Integers,
    ) -> Result<(), CheckpointError> {
        let (parts, zeros) = self.integer_parts(node, stored, &(0..stored.rows))?;
        let dtype = if stored.form.bits == 2 {
            let group = nbits::group_of(stored.form.block);
            let group = u32::try_from(group).map_err(|_| self.refuse(node, "its `block_size`"))?;
            Dtype::ScaledTable(group)
        } else {
            parts[1].dtype
        };
        let info = info(name, dtype, vec![stored.rows, stored.columns], &parts[0]);
        let node = node_name(self.graph, node);
        let recipe = Conversion::Integers { form: stored.form, zeros, node };
        self.items.push(Item::new(info, parts, recipe));
        Ok(())
    }

    /// Codes, scales and zero points of some rows.
    pub(super) fn integer_parts(
        &mut self,
        node: &Node,
        stored: &Integers,
        taken: &Range<usize>,
    ) -> Result<(Vec<DataRange>, ZeroPart), CheckpointError> {
        let codes = self.rows(node, stored.codes, taken, stored.form.row)?;
        let scales = self.rows(node, stored.scales, taken, stored.groups)?;
        let mut parts = vec![codes, scales];
        let Some(index) = stored.zeros else { return Ok((parts, ZeroPart::Default)) };
        let found = &self.graph.initializers[index];
        let (zeros, per_row) = if found.nibbles().is_some() {
            parts.push(self.whole(index));
            return Ok((parts, ZeroPart::Flat(2)));
        } else if found.dtype() == Some(Dtype::U8) {
            (ZeroPart::Packed(2), stored.groups.div_ceil(8 / stored.form.bits))
        } else {
            (ZeroPart::Floats(2), stored.groups)
        };
        parts.push(self.rows(node, index, taken, per_row)?);
        Ok((parts, zeros))
    }

    /// A parameter that counts something.
    fn size(
        &self,
        node: &Node,
        name: &str,
        default: Option<usize>,
    ) -> Result<usize, CheckpointError> {
        let found = match node.int(name) {
            None => default,
            Some(size) => usize::try_from(size).ok(),
        };
        let found = found.filter(|size| (1..=MAX_SIZE).contains(size));
        found.ok_or_else(|| self.refuse(node, format!("its `{name}` is missing or out of range")))
    }

    /// Columns of a block.
    fn block(&self, node: &Node, default: Option<usize>) -> Result<usize, CheckpointError> {
        let block = self.size(node, "block_size", default)?;
        if !block.is_power_of_two() || block < 16 {
            return Err(self.refuse(node, format!("its `block_size` is {block}")));
        }
        Ok(block)
    }

    /// Zero points: packed as bytes, or floats; the fourth input of either operation.
    fn zeros(
        &self,
        node: &Node,
        rows: usize,
        groups: usize,
        bits: usize,
    ) -> Result<Option<usize>, CheckpointError> {
        const INDEX: usize = 3;
        let is_packed = |index: usize| self.graph.initializers[index].dtype() == Some(Dtype::U8);
        let found = node.input(INDEX).and_then(|name| self.graph.flat_source(name));
        let packed = groups.div_ceil(8 / bits);
        let per_row = if found.is_some_and(is_packed) { packed } else { groups };
        let is_gather = node.op == "GatherBlockQuantized";
        let types = if is_gather { vec![] } else { FLOATS.to_vec() };
        let types = &[types, vec![Dtype::U8]].concat();
        self.find_input(node, rows, &Input { index: INDEX, what: "zero points", types, per_row })
    }

    fn required(
        &self,
        node: &Node,
        rows: usize,
        input: &Input<'_>,
    ) -> Result<usize, CheckpointError> {
        let found = self.find_input(node, rows, input)?;
        found.ok_or_else(|| self.refuse(node, format!("it has no {}", input.what)))
    }

    /// The initialiser of an input, if there is that input.
    fn find_input(
        &self,
        node: &Node,
        rows: usize,
        input: &Input<'_>,
    ) -> Result<Option<usize>, CheckpointError> {
        let &Input { index, what, types, per_row } = input;
        let Some(name) = node.input(index) else {
            return Ok(None);
        };
        let Some(index) = self.graph.flat_source(name) else {
            return Err(self.refuse(node, format!("its {what} are no initialiser")));
        };
        let found = &self.graph.initializers[index];
        let known = found.dtype().is_some_and(|dtype| types.contains(&dtype));
        if !known || !rows_of(found, rows, per_row) {
            let (shape, type_) = (&found.shape, found.data_type);
            let what = format!(
                "its {what} have shape {shape:?} and type {type_}, expected [{rows}, {per_row}]"
            );
            return Err(self.refuse(node, what));
        }
        Ok(Some(index))
    }

    fn is_empty(&self, name: &str) -> bool {
        let index = self.graph.initializer(name);
        index.is_some_and(|index| self.graph.initializers[index].elements() == 0)
    }
}

/// Whether an initialiser has this many rows, flat or not, of this many elements.
fn rows_of(found: &Initializer, rows: usize, per_row: usize) -> bool {
    let all = rows.checked_mul(per_row);
    let first = found.shape.first().copied();
    all == Some(found.elements()) && (first == Some(rows) || first == all)
}

//! Linear layers of a graph.

use std::ops::Range;

use super::{Plan, after::After, info, node_name};
use crate::{
    dense::FLOATS,
    dtype::Dtype,
    error::CheckpointError,
    onnx::{
        graph::{Initializer, Node},
        item::{Item, Recipe, ZeroPart},
        names::{self, Linear},
        part::Orientation,
    },
    warning::Warning,
};

/// The parameters of a `MatMulNBits`.
struct NBits {
    rows: usize,
    columns: usize,
    block: usize,
    groups: usize,
    codes: usize, // this and the next: initialisers
    scales: usize,
    zeros: Option<usize>,
}

impl Plan<'_> {
    /// A product with a matrix of floats, if it is one.
    pub(super) fn add_floats(&mut self, node: &Node) -> Result<(), CheckpointError> {
        let Some((index, transposed)) = node.input(1).and_then(|name| self.graph.source(name))
        else {
            return Ok(());
        };
        let found = &self.graph.initializers[index];
        if node.name.contains("rotary_emb") || found.name.contains("rotary_emb") {
            return Ok(());
        }
        let linear = self.linear(node, found)?;
        let is_float = found.dtype().is_some_and(|dtype| FLOATS.contains(&dtype));
        let [first, second] = found.shape[..] else {
            return Err(self.refuse(node, format!("its weight has shape {:?}", found.shape)));
        };
        if !is_float {
            return Err(self.refuse(node, "its weight is not of floats"));
        }
        // As it is stored, a product's matrix has the inputs first.
        let inputs_first = transposed == (node.int("transB") == Some(1));
        let (rows, columns) = if inputs_first { (second, first) } else { (first, second) };
        let mut after = self.after(node, rows)?;
        if node.op == "Gemm" {
            self.check_gemm(node, rows, &mut after)?;
        }
        if linear == Linear::Head {
            return self.add_head(node, index, inputs_first, after);
        }
        for (name, taken) in self.modules(node, &linear, rows)? {
            let orientation = if inputs_first {
                Orientation::Columns { all: rows, taken: taken.clone() }
            } else {
                Orientation::Rows
            };
            let part = if inputs_first {
                self.whole(index)
            } else {
                self.rows(node, index, &taken, columns)?
            };
            let shape = vec![taken.len(), columns];
            let info = info(&format!("{name}.weight"), Dtype::ScaledCodes, shape, &part);
            let mut parts = vec![part];
            let factor = self.factor(after, &mut parts);
            let (masters, node_name) = (self.masters, node_name(self.graph, node));
            let recipe = Recipe::Linear { orientation, masters, factor, node: node_name };
            self.items.push(Item { info, parts, recipe });
            self.add_bias(node, &name, after, &taken)?;
        }
        Ok(())
    }

    /// Parameters and bias of a `Gemm`.
    fn check_gemm(
        &mut self,
        node: &Node,
        rows: usize,
        after: &mut After,
    ) -> Result<(), CheckpointError> {
        let is_one = |name| node.float(name).is_none_or(|value| value == 1.0);
        if node.int("transA").unwrap_or(0) != 0 || !is_one("alpha") || !is_one("beta") {
            return Err(self.refuse(node, "it has a transposed input or a factor"));
        }
        let Some(name) = node.input(2) else {
            return Ok(());
        };
        let bias = self.vector(name, rows);
        if bias.is_none() || after.bias.is_some() || after.factor.is_some() {
            return Err(self.refuse(node, "its third input is no bias of its own"));
        }
        after.bias = bias;
        Ok(())
    }

    fn add_head(
        &mut self,
        node: &Node,
        index: usize,
        inputs_first: bool,
        after: After,
    ) -> Result<(), CheckpointError> {
        if after.factor.is_some() || after.bias.is_some() {
            return Err(self.refuse(node, "a head with a scale or a bias is not supported"));
        }
        if self.config.tied_head {
            self.used[index] = true;
        } else {
            self.add_table("lm_head.weight", index, inputs_first);
        }
        Ok(())
    }

    /// A product with a matrix of `MatMulNBits`.
    pub(super) fn add_nbits(&mut self, node: &Node) -> Result<(), CheckpointError> {
        let named = |input| node.input(input).and_then(|name| self.graph.initializer(name));
        let linear = names::linear(&node.name);
        if linear == Some(Linear::Head) && self.config.tied_head {
            for input in [1, 2, 3] {
                if let Some(index) = named(input) {
                    self.used[index] = true;
                }
            }
            let what = format!("the head of node `{}` is the embedding instead", node.name);
            self.warnings.push(Warning { file: self.graph.file.to_string(), what });
            return Ok(());
        }
        let codes = named(1).ok_or_else(|| self.refuse(node, "its weight is no initialiser"))?;
        let linear = self.linear(node, &self.graph.initializers[codes])?;
        if linear == Linear::Head {
            return Err(self.refuse(node, "a quantized head is supported where it is tied only"));
        }
        let stored = self.check_nbits(node, codes)?;
        let mut after = self.after(node, stored.rows)?;
        if let Some(name) = node.input(5) {
            let bias = self.vector(name, stored.rows);
            if bias.is_none() || after.bias.is_some() || after.factor.is_some() {
                return Err(self.refuse(node, "its sixth input is no bias of its own"));
            }
            after.bias = bias;
        }
        for (name, taken) in self.modules(node, &linear, stored.rows)? {
            self.add_nbits_rows(node, &stored, &name, &taken, after)?;
            self.add_bias(node, &name, after, &taken)?;
        }
        Ok(())
    }

    fn add_nbits_rows(
        &mut self,
        node: &Node,
        stored: &NBits,
        name: &str,
        taken: &Range<usize>,
        after: After,
    ) -> Result<(), CheckpointError> {
        let codes = self.rows(node, stored.codes, taken, stored.groups * stored.block / 4)?;
        let scales = self.rows(node, stored.scales, taken, stored.groups)?;
        let shape = vec![taken.len(), stored.columns];
        let info = info(&format!("{name}.weight"), Dtype::ScaledCodes, shape, &codes);
        let mut parts = vec![codes, scales];
        let zeros = match stored.zeros {
            None => ZeroPart::Default,
            Some(index) if self.graph.initializers[index].dtype() == Some(Dtype::U8) => {
                parts.push(self.rows(node, index, taken, stored.groups.div_ceil(4))?);
                ZeroPart::Packed(2)
            }
            Some(index) => {
                parts.push(self.rows(node, index, taken, stored.groups)?);
                ZeroPart::Floats(2)
            }
        };
        let factor = self.factor(after, &mut parts);
        let node = node_name(self.graph, node);
        let recipe = Recipe::NBits { block: stored.block, zeros, factor, node };
        self.items.push(Item { info, parts, recipe });
        Ok(())
    }

    /// Parameters and inputs of a `MatMulNBits`, checked against each other.
    fn check_nbits(&self, node: &Node, codes: usize) -> Result<NBits, CheckpointError> {
        let size = |name: &str| {
            let found = node.int(name).and_then(|size| usize::try_from(size).ok());
            let found = found.filter(|size| (1..=MAX_SIZE).contains(size));
            found.ok_or_else(|| {
                self.refuse(node, format!("its `{name}` is missing or out of range"))
            })
        };
        let (rows, columns, block) = (size("N")?, size("K")?, size("block_size")?);
        let bits = node.int("bits").unwrap_or(4);
        if bits != 2 {
            return Err(self.refuse(node, format!("its `bits` is {bits}, only 2 is supported")));
        }
        if !block.is_power_of_two() || block < 16 {
            return Err(self.refuse(node, format!("its `block_size` is {block}")));
        }
        if node.int("weight_prepacked").unwrap_or(0) != 0 {
            return Err(self.refuse(node, "its weight is packed for one device"));
        }
        if node.input(4).is_some_and(|name| !self.is_empty(name)) {
            return Err(self.refuse(node, "its columns are regrouped (`g_idx`)"));
        }
        let groups = columns.div_ceil(block);
        let find = |input: usize, what: &str, types: &[Dtype], per_row: usize| {
            let Some(name) = node.input(input) else {
                return Ok(None);
            };
            let Some(index) = self.graph.initializer(name) else {
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
        };
        find(1, "codes", &[Dtype::U8], groups * block / 4)?;
        let scales = find(2, "scales", &FLOATS, groups)?;
        let scales = scales.ok_or_else(|| self.refuse(node, "it has no scales"))?;
        let is_packed = |index: usize| self.graph.initializers[index].dtype() == Some(Dtype::U8);
        let zeros = node.input(3).and_then(|name| self.graph.initializer(name));
        let per_row = if zeros.is_some_and(is_packed) { groups.div_ceil(4) } else { groups };
        let types = [&FLOATS[..], &[Dtype::U8]].concat();
        let zeros = find(3, "zero points", &types, per_row)?;
        Ok(NBits { rows, columns, block, groups, codes, scales, zeros })
    }

    fn is_empty(&self, name: &str) -> bool {
        let index = self.graph.initializer(name);
        index.is_some_and(|index| self.graph.initializers[index].elements() == 0)
    }

    /// The linear layer that a node and its weight are named after.
    fn linear(&self, node: &Node, weight: &Initializer) -> Result<Linear, CheckpointError> {
        match (names::linear(&node.name), names::linear(&weight.name)) {
            (Some(a), Some(b)) if a != b && b != Linear::Head => {
                let what = format!("its weight is named `{}`", weight.name);
                Err(self.refuse(node, what))
            }
            (Some(linear), _) | (None, Some(linear)) => Ok(linear),
            (None, None) => {
                let what = format!(
                    "neither its name nor that of its weight, `{}`, is one of a known layer",
                    weight.name
                );
                Err(self.refuse(node, what))
            }
        }
    }

    /// The layers that share a matrix of so many rows, and the rows of each.
    fn modules(
        &self,
        node: &Node,
        linear: &Linear,
        rows: usize,
    ) -> Result<Vec<(String, Range<usize>)>, CheckpointError> {
        let layer = match linear {
            Linear::Head => return Ok(vec![]),
            Linear::One(name) => return Ok(vec![(name.clone(), 0..rows)]),
            Linear::Qkv(layer) => layer,
        };
        let (queries, keys) = (self.config.query_width(), self.config.kv_width());
        if rows != queries + 2 * keys {
            let what = format!("it has {rows} rows, expected {queries} + 2 · {keys}");
            return Err(self.refuse(node, what));
        }
        let name = |part: &str| format!("model.layers.{layer}.self_attn.{part}_proj");
        Ok(vec![
            (name("q"), 0..queries),
            (name("k"), queries..queries + keys),
            (name("v"), queries + keys..rows),
        ])
    }

    fn add_bias(
        &mut self,
        node: &Node,
        module: &str,
        after: After,
        taken: &Range<usize>,
    ) -> Result<(), CheckpointError> {
        let Some(index) = after.bias else {
            return Ok(());
        };
        let part = self.rows(node, index, taken, 1)?;
        let info = info(&format!("{module}.bias"), part.dtype, vec![taken.len()], &part);
        let recipe = Recipe::Floats(Orientation::Rows);
        self.items.push(Item { info, parts: vec![part], recipe });
        Ok(())
    }
}

/// Most rows or columns: so many bytes of codes can be counted.
const MAX_SIZE: usize = 1 << 28;

/// Whether an initialiser has so many rows, flat or not, of so many elements.
fn rows_of(found: &Initializer, rows: usize, per_row: usize) -> bool {
    let all = rows.checked_mul(per_row);
    let first = found.shape.first().copied();
    all == Some(found.elements()) && (first == Some(rows) || first == all)
}

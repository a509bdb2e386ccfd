//! Linear layers of a graph.

use std::ops::Range;

use super::{HEAD_WEIGHT, Plan, after::After, info, integers::Integers, node_name};
use crate::{
    dtype::Dtype,
    dtype::FLOATS,
    error::CheckpointError,
    onnx::{
        data_range::Orientation,
        graph::{Initializer, Node},
        item::{Conversion, Item},
        names::{self, Linear},
    },
    warning::Warning,
};

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
            let recipe = Conversion::Linear { orientation, masters, factor, node: node_name };
            self.items.push(Item::new(info, parts, recipe));
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
        self.check_head(node, after)?;
        if self.config.tied_head {
            self.used[index] = true;
        } else {
            self.add_table(HEAD_WEIGHT, index, inputs_first);
        }
        Ok(())
    }

    fn check_head(&self, node: &Node, after: After) -> Result<(), CheckpointError> {
        if after.factor.is_some() || after.bias.is_some() {
            return Err(self.refuse(node, "a head with a scale or a bias is not supported"));
        }
        Ok(())
    }

    /// A product with a matrix of `MatMulNBits`.
    pub(super) fn add_nbits(&mut self, node: &Node) -> Result<(), CheckpointError> {
        let named = |input| node.input(input).and_then(|name| self.graph.initializer(name));
        let linear = names::linear(&node.name);
        if linear == Some(Linear::Head) && self.config.tied_head {
            let inputs: Vec<_> = [1, 2, 3].into_iter().filter_map(named).collect();
            let is_other = inputs.first().is_some_and(|&codes| !self.used[codes]);
            for index in inputs {
                self.used[index] = true;
            }
            if is_other {
                let what = format!("the head of node `{}` is the embedding instead", node.name);
                self.warnings.push(Warning { file: self.graph.file.to_string(), what });
            }
            return Ok(());
        }
        let codes = named(1).ok_or_else(|| self.refuse(node, "its weight is no initialiser"))?;
        let linear = self.linear(node, &self.graph.initializers[codes])?;
        let is_head = linear == Linear::Head;
        let stored = self.check_nbits(node, is_head)?;
        let mut after = self.after(node, stored.rows)?;
        if let Some(name) = node.input(5) {
            let bias = self.vector(name, stored.rows);
            if bias.is_none() || after.bias.is_some() || after.factor.is_some() {
                return Err(self.refuse(node, "its sixth input is no bias of its own"));
            }
            after.bias = bias;
        }
        if is_head {
            self.check_head(node, after)?;
            return self.add_integers(node, HEAD_WEIGHT, &stored);
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
        stored: &Integers,
        name: &str,
        taken: &Range<usize>,
        after: After,
    ) -> Result<(), CheckpointError> {
        let (mut parts, zeros) = self.integer_parts(node, stored, taken)?;
        let shape = vec![taken.len(), stored.columns];
        let info = info(&format!("{name}.weight"), Dtype::ScaledCodes, shape, &parts[0]);
        let factor = self.factor(after, &mut parts);
        let node = node_name(self.graph, node);
        let recipe = Conversion::NBits { form: stored.form, zeros, factor, node };
        self.items.push(Item::new(info, parts, recipe));
        Ok(())
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

    /// The layers that share a matrix of this many rows, and the rows of each.
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
        let recipe = Conversion::Floats(Orientation::Rows);
        self.items.push(Item::new(info, vec![part], recipe));
        Ok(())
    }
}

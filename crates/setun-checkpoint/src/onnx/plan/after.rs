//! The scale and the bias after a product.

use super::Plan;
use crate::{
    dtype::FLOATS,
    error::CheckpointError,
    onnx::{data_range::DataRange, graph::Node, item::Factor},
};

/// What is applied to the result of a product.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct After {
    /// A number, or the initialiser of one, and whether it divides.
    pub(super) factor: Option<(FactorOf, bool)>,
    /// The initialiser of a bias.
    pub(super) bias: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum FactorOf {
    Number(f32),
    Initializer(usize),
}

impl Plan<'_> {
    /// The scale and the bias that are applied to what a node gives, by nodes of the same module.
    pub(super) fn after(&self, node: &Node, rows: usize) -> Result<After, CheckpointError> {
        let mut after = After::default();
        let mut last = node;
        while let Some((value, next)) = self.graph.only_consumer(last) {
            let other = match (next.input(0), next.input(1)) {
                (Some(a), Some(b)) if a == value => Some(b),
                (Some(a), Some(b)) if b == value && next.op != "Div" => Some(a),
                _ => None,
            };
            match (next.op.as_str(), other) {
                ("Mul" | "Div", Some(other)) => {
                    let Some(factor) = self.number(other) else {
                        break;
                    };
                    if after.factor.is_some() || after.bias.is_some() || !same_module(node, next) {
                        return Err(self.refuse(next, "what it scales is not known"));
                    }
                    after.factor = Some((factor, next.op == "Div"));
                }
                ("Add", Some(other)) => {
                    let Some(bias) = self.vector(other, rows) else {
                        break;
                    };
                    if after.bias.replace(bias).is_some() || !same_module(node, next) {
                        return Err(self.refuse(next, "what it adds to is not known"));
                    }
                }
                _ => break,
            }
            last = next;
        }
        Ok(after)
    }

    /// A float that is all of an initialiser or a constant.
    fn number(&self, name: &str) -> Option<FactorOf> {
        if let Some((index, _)) = self.graph.source(name) {
            let found = &self.graph.initializers[index];
            let is_float = found.dtype().is_some_and(|dtype| FLOATS.contains(&dtype));
            return (found.elements() == 1 && is_float).then_some(FactorOf::Initializer(index));
        }
        let constant = self.graph.producer(name)?.constant.as_ref()?;
        constant.number.map(FactorOf::Number)
    }

    /// An initialiser of this many floats.
    pub(super) fn vector(&self, name: &str, length: usize) -> Option<usize> {
        let (index, _) = self.graph.source(name)?;
        let found = &self.graph.initializers[index];
        let is_float = found.dtype().is_some_and(|dtype| FLOATS.contains(&dtype));
        (found.shape[..] == [length] && is_float).then_some(index)
    }

    pub(super) fn factor(&mut self, after: After, parts: &mut Vec<DataRange>) -> Factor {
        match after.factor {
            None => Factor::None,
            Some((FactorOf::Number(number), divides)) => Factor::Number { number, divides },
            Some((FactorOf::Initializer(index), divides)) => {
                parts.push(self.whole(index));
                Factor::Part { part: parts.len() - 1, divides }
            }
        }
    }
}

/// Whether two nodes are of one module, from their names.
fn same_module(a: &Node, b: &Node) -> bool {
    let module = |node: &Node| node.name.rsplit_once('/').map(|(module, _)| module.to_owned());
    module(a).is_some() && module(a) == module(b)
}

//! Which tensor of a Hugging Face folder each weight of a graph is.

mod after;
mod integers;
mod linear;

use std::ops::Range;

use super::{
    data_range::{DataRange, Orientation},
    graph::{self, Graph, Initializer, Node},
    item::{Conversion, Item, NodeName},
    names,
};
use crate::{
    config::{ModelConfig, QuantizationMode},
    dtype::Dtype,
    dtype::FLOATS,
    error::CheckpointError,
    tensor::TensorInfo,
    warning::Warning,
};

/// The tensors of a graph, in file order.
///
/// # Errors
///
/// If an operation multiplies by weights whose place in the model is not known or whose form is
/// not read, or a tensor of the graph has no use that is known.
pub(super) fn items(
    graph: &Graph,
    config: &ModelConfig,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Item>, CheckpointError> {
    check_unique(graph)?;
    let used = vec![false; graph.initializers.len()];
    let masters = config.quantization.mode == QuantizationMode::Online;
    let mut plan = Plan { graph, config, masters, used, items: vec![], warnings };
    for node in &graph.nodes {
        plan.add_node(node)?;
    }
    for index in 0..graph.initializers.len() {
        plan.add_rest(index)?;
    }
    let mut items = plan.items;
    items.sort_by(|a, b| {
        let place = |item: &Item| (item.info.file.clone(), item.info.range.start);
        place(a).cmp(&place(b))
    });
    Ok(items)
}

fn check_unique(graph: &Graph) -> Result<(), CheckpointError> {
    let is_another = |(index, found): (usize, &Initializer)| {
        (graph.initializer(&found.name) != Some(index)).then(|| found.name.clone())
    };
    match graph.initializers.iter().enumerate().find_map(is_another) {
        None => Ok(()),
        Some(tensor) => {
            Err(CheckpointError::DuplicateTensor { file: graph.file.to_string(), tensor })
        }
    }
}

struct Plan<'a> {
    graph: &'a Graph,
    config: &'a ModelConfig,
    /// Whether floats may be master weights.
    masters: bool,
    used: Vec<bool>, // by initialiser
    items: Vec<Item>,
    warnings: &'a mut Vec<Warning>,
}

/// In the names of the embedding's operation and of its table.
const EMBEDDING: &str = "embed_tokens";
const EMBEDDING_WEIGHT: &str = "model.embed_tokens.weight";
const HEAD_WEIGHT: &str = "lm_head.weight";

impl Plan<'_> {
    fn add_node(&mut self, node: &Node) -> Result<(), CheckpointError> {
        if node.has_graph {
            return Err(self.refuse(node, "it holds graphs, which are not read"));
        }
        match node.op.as_str() {
            "MatMulNBits" => self.add_nbits(node),
            "MatMul" | "Gemm" => self.add_floats(node),
            "Gather" => {
                self.add_embedding(node);
                Ok(())
            }
            "GatherBlockQuantized" => self.add_quantized_embedding(node),
            "Constant" => match &node.constant {
                Some(constant) if constant.rank > 1 && !graph::is_index(constant.data_type) => {
                    Err(self.refuse(node, "it holds a matrix; only initialisers are read"))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn add_embedding(&mut self, node: &Node) {
        let Some((index, transposed)) = node.input(0).and_then(|name| self.graph.source(name))
        else {
            return;
        };
        let table = &self.graph.initializers[index];
        let named = node.name.contains(EMBEDDING) || table.name.contains(EMBEDDING);
        let is_float = table.dtype().is_some_and(|dtype| FLOATS.contains(&dtype));
        if named && is_float && table.shape.len() == 2 {
            self.add_table(EMBEDDING_WEIGHT, index, transposed);
        }
    }

    /// A table of floats as it is stored, or transposed.
    fn add_table(&mut self, name: &str, index: usize, transposed: bool) {
        let found = &self.graph.initializers[index];
        let shape = &found.shape;
        let (rows, columns) = if transposed { (shape[1], shape[0]) } else { (shape[0], shape[1]) };
        let orientation = if transposed {
            Orientation::Columns { all: rows, taken: 0..rows }
        } else {
            Orientation::Rows
        };
        self.add_plain(name, index, vec![rows, columns], orientation);
    }

    fn add_plain(&mut self, name: &str, index: usize, shape: Vec<usize>, orientation: Orientation) {
        let part = self.whole(index);
        let info = info(name, part.dtype, shape, &part);
        self.items.push(Item::new(info, vec![part], Conversion::Floats(orientation)));
    }

    /// All of an initialiser.
    fn whole(&mut self, index: usize) -> DataRange {
        self.used[index] = true;
        let found = &self.graph.initializers[index];
        let in_element = if found.nibbles().is_some() { 2 } else { 1 };
        DataRange {
            file: found.file.clone(),
            range: found.range.clone(),
            dtype: found.dtype().unwrap_or(Dtype::U8),
            elements: found.elements().div_ceil(in_element),
            varints: found.varints,
        }
    }

    /// Some rows of an initialiser of which a row has this many elements.
    fn rows(
        &mut self,
        node: &Node,
        index: usize,
        rows: &Range<usize>,
        row: usize,
    ) -> Result<DataRange, CheckpointError> {
        let whole = self.whole(index);
        let elements = rows.len() * row;
        if elements == whole.elements {
            return Ok(whole);
        }
        if whole.varints {
            return Err(self.refuse(node, "its data are written as `int32_data`, in one piece"));
        }
        let place = |row_index: usize| whole.dtype.bytes(&[row_index, row]).unwrap_or(0);
        let start = whole.range.start;
        let range = start + place(rows.start)..start + place(rows.end);
        Ok(DataRange { range, elements, ..whole })
    }

    /// An initialiser that no operation was known by: a norm's gain, or nothing that a model has.
    fn add_rest(&mut self, index: usize) -> Result<(), CheckpointError> {
        let found = &self.graph.initializers[index];
        let consumers: Vec<_> = self.graph.consumers(&found.name).collect();
        if self.used[index] || consumers.is_empty() || graph::is_index(found.data_type) {
            return Ok(());
        }
        let is_float = found.dtype().is_some_and(|dtype| FLOATS.contains(&dtype));
        if let ([length], true) = (&found.shape[..], is_float) {
            let layers = self.config.layers.len();
            let by_node = || consumers.iter().find_map(|n| names::norm_of_node(&n.name, layers));
            if let Some(name) = names::norm(&found.name, layers).or_else(by_node) {
                self.add_plain(&name, index, vec![*length], Orientation::Rows);
                return Ok(());
            }
        }
        let is_number = found.elements() == 1 && !found.name.ends_with("weight_scale");
        if is_number || is_rope(found, &consumers) {
            return Ok(());
        }
        let node = node_name(self.graph, consumers[0]);
        Err(CheckpointError::OnnxTensor {
            file: self.graph.file.to_string(),
            tensor: found.name.clone(),
            what: format!("its use by node `{}` ({}) is not known", node.name, node.op),
        })
    }

    fn refuse(&self, node: &Node, what: impl Into<String>) -> CheckpointError {
        node_name(self.graph, node).refuse(what)
    }
}

/// Whether a tensor is of the rotary position embedding, which is computed from the configuration.
fn is_rope(found: &Initializer, consumers: &[&Node]) -> bool {
    const OPERATIONS: [&str; 3] = ["RotaryEmbedding", "GroupQueryAttention", "MultiHeadAttention"];
    const MODULE: &str = "rotary_emb";
    let is_cache = found.name.contains("cos") || found.name.contains("sin");
    let by_operation = consumers.iter().all(|node| OPERATIONS.contains(&node.op.as_str()));
    let by_node = consumers.iter().all(|node| node.name.contains(MODULE));
    is_cache && by_operation || by_node || found.name.contains(MODULE)
}

fn node_name(graph: &Graph, node: &Node) -> NodeName {
    let unnamed = || node.outputs.first().cloned().unwrap_or_default();
    let name = if node.name.is_empty() { unnamed() } else { node.name.clone() };
    NodeName { file: graph.file.clone(), name, op: node.op.clone() }
}

fn info(name: &str, dtype: Dtype, shape: Vec<usize>, part: &DataRange) -> TensorInfo {
    let (file, range) = (part.file.clone(), part.range.clone());
    TensorInfo { name: name.to_owned(), dtype, shape, file, range, paired_heads: None }
}

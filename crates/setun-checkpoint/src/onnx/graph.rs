//! The weights of an ONNX graph.

use std::{collections::HashMap, ops::Range, sync::Arc};

use half::{bf16, f16};
use prost::{DecodeError, Message};

use super::messages::{AttributeProto, NodeProto, TensorProto};
use crate::dtype::Dtype;

/// A graph: its operations, and the tensors that it holds.
#[derive(Debug)]
pub(super) struct Graph {
    /// Name of the file.
    pub(super) file: Arc<str>,
    pub(super) nodes: Vec<Node>,
    pub(super) initializers: Vec<Initializer>,
    by_name: HashMap<String, usize>,
    producers: HashMap<String, usize>,
    consumers: HashMap<String, Vec<usize>>,
}

/// An operation.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) op: String,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    /// Numbers among its parameters.
    pub(super) ints: Vec<(String, Vec<i64>)>,
    pub(super) floats: Vec<(String, f32)>,
    pub(super) has_graph: bool,
    pub(super) constant: Option<Constant>,
}

/// The tensor of an operation `Constant`.
#[derive(Debug)]
pub(super) struct Constant {
    pub(super) data_type: i32,
    pub(super) rank: usize,
    /// Its element, where it is one float.
    pub(super) number: Option<f32>,
}

/// A tensor of a graph.
#[derive(Debug)]
pub(super) struct Initializer {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) data_type: i32,
    pub(super) file: Arc<str>,
    pub(super) range: Range<u64>,
    /// Whether the range holds varints, an element each, and not the elements themselves.
    pub(super) varints: bool,
}

impl Initializer {
    /// The element type, if it is one of those that are read.
    pub(super) fn dtype(&self) -> Option<Dtype> {
        dtype(self.data_type)
    }

    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether its elements are integers of four bits, two in a byte, and then whether these have
    /// a sign.
    pub(super) fn nibbles(&self) -> Option<bool> {
        const UINT4: i32 = 21;
        const INT4: i32 = 22;
        let is_signed = match self.data_type {
            UINT4 => false,
            INT4 => true,
            _ => return None,
        };
        let bytes = self.range.end - self.range.start;
        (bytes == self.elements().div_ceil(2) as u64 && !self.varints).then_some(is_signed)
    }
}

/// The element types of weights, of `TensorProto.DataType`.
pub(super) fn dtype(data_type: i32) -> Option<Dtype> {
    match data_type {
        1 => Some(Dtype::F32),
        2 => Some(Dtype::U8),
        10 => Some(Dtype::F16),
        16 => Some(Dtype::Bf16),
        _ => None,
    }
}

/// Whether tensors of this type are places, sizes or masks, and never weights.
pub(super) fn is_index(data_type: i32) -> bool {
    const INT32: i32 = 6;
    const INT64: i32 = 7;
    const STRING: i32 = 8;
    const BOOL: i32 = 9;
    matches!(data_type, INT32 | INT64 | STRING | BOOL)
}

impl Graph {
    pub(super) fn new(file: Arc<str>, nodes: Vec<Node>, initializers: Vec<Initializer>) -> Self {
        let by_name = initializers.iter().enumerate();
        let by_name = by_name.map(|(index, found)| (found.name.clone(), index)).collect();
        let mut producers = HashMap::new();
        let mut consumers: HashMap<_, Vec<_>> = HashMap::new();
        for (index, node) in nodes.iter().enumerate() {
            producers.extend(node.outputs.iter().map(|name| (name.clone(), index)));
            for name in node.inputs.iter().filter(|name| !name.is_empty()) {
                consumers.entry(name.clone()).or_default().push(index);
            }
        }
        Self { file, nodes, initializers, by_name, producers, consumers }
    }

    pub(super) fn initializer(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(super) fn producer(&self, name: &str) -> Option<&Node> {
        self.producers.get(name).map(|&node| &self.nodes[node])
    }

    pub(super) fn consumers(&self, name: &str) -> impl Iterator<Item = &Node> {
        self.consumers.get(name).into_iter().flatten().map(|&node| &self.nodes[node])
    }

    /// The one operation that takes what `node` gives, if it is one, past casts.
    pub(super) fn only_consumer<'a>(&'a self, node: &'a Node) -> Option<(&'a str, &'a Node)> {
        let mut output = node.outputs.first()?;
        for _ in 0..MAX_STEPS {
            let mut consumers = self.consumers(output);
            let (next, None) = (consumers.next()?, consumers.next()) else {
                return None;
            };
            if next.op != "Cast" {
                return Some((output, next));
            }
            output = next.outputs.first()?;
        }
        None
    }

    /// The initialiser that a value is, past operations that only reshape it.
    pub(super) fn flat_source(&self, name: &str) -> Option<usize> {
        let mut name = name;
        for _ in 0..MAX_STEPS {
            if let Some(index) = self.initializer(name) {
                return Some(index);
            }
            let node = self.producer(name)?;
            if !["Reshape", "Identity"].contains(&node.op.as_str()) {
                return None;
            }
            name = node.input(0)?;
        }
        None
    }

    /// The initialiser that a value is, past casts and transpositions, and whether it is
    /// transposed.
    pub(super) fn source(&self, name: &str) -> Option<(usize, bool)> {
        let (mut name, mut transposed) = (name, false);
        for _ in 0..MAX_STEPS {
            if let Some(index) = self.initializer(name) {
                return Some((index, transposed));
            }
            let node = self.producer(name)?;
            match node.op.as_str() {
                "Cast" | "Identity" => {}
                "Transpose" if matches!(node.ints("perm"), None | Some([1, 0])) => {
                    transposed = !transposed;
                }
                _ => return None,
            }
            name = node.inputs.first()?;
        }
        None
    }
}

/// Most operations in a row that are followed.
const MAX_STEPS: usize = 8;

impl Node {
    pub(super) fn new(node: NodeProto) -> Result<Self, DecodeError> {
        let (mut ints, mut floats, mut constant, mut has_graph) = (vec![], vec![], None, false);
        for attribute in node.attribute {
            let attribute = AttributeProto::decode(&attribute[..])?;
            has_graph |= attribute.g.is_some() || !attribute.graphs.is_empty();
            if let Some(tensor) = attribute.t {
                constant = Some(Constant::new(&tensor));
            } else if node.op_type == "Constant" && attribute.name == "value_float" {
                let number = Some(attribute.f);
                constant = Some(Constant { data_type: 1, rank: 0, number });
            }
            let many = KEPT_LISTS.contains(&attribute.name.as_str());
            let list = if many { attribute.ints } else { vec![attribute.i] };
            if many || KEPT.contains(&attribute.name.as_str()) {
                floats.push((attribute.name.clone(), attribute.f));
                ints.push((attribute.name, list));
            }
        }
        let (name, op, inputs, outputs) = (node.name, node.op_type, node.input, node.output);
        Ok(Self { name, op, inputs, outputs, ints, floats, has_graph, constant })
    }

    /// A parameter that is a list of integers.
    pub(super) fn ints(&self, name: &str) -> Option<&[i64]> {
        self.ints.iter().find(|(found, _)| found == name).map(|(_, values)| values.as_slice())
    }

    /// A parameter that is an integer.
    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.ints(name).and_then(|values| values.first().copied())
    }

    /// A parameter that is a float.
    pub(super) fn float(&self, name: &str) -> Option<f32> {
        self.floats.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
    }

    /// An input that there is.
    pub(super) fn input(&self, index: usize) -> Option<&str> {
        self.inputs.get(index).map(String::as_str).filter(|name| !name.is_empty())
    }
}

/// Parameters that are read.
const KEPT: [&str; 11] = [
    "K",
    "N",
    "bits",
    "block_size",
    "transA",
    "transB",
    "alpha",
    "beta",
    "weight_prepacked",
    "gather_axis",
    "quantize_axis",
];
const KEPT_LISTS: [&str; 1] = ["perm"];

impl Constant {
    fn new(tensor: &TensorProto) -> Self {
        let is_one = tensor.dims.iter().all(|&size| size == 1);
        let number = match (tensor.data_type, &tensor.raw_data[..], &tensor.float_data[..]) {
            (1, &[a, b, c, d], []) => Some(f32::from_le_bytes([a, b, c, d])),
            (1, [], &[number]) => Some(number),
            (10, &[a, b], _) => Some(f16::from_le_bytes([a, b]).to_f32()),
            (16, &[a, b], _) => Some(bf16::from_le_bytes([a, b]).to_f32()),
            _ => None,
        };
        let (data_type, rank) = (tensor.data_type, tensor.dims.len());
        Self { data_type, rank, number: number.filter(|_| is_one) }
    }
}

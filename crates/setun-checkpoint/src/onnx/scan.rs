//! Walks through the file of a graph, past the elements of its tensors.
//!
//! A model is one protobuf message with the graph in it, and that holds the tensors. Its frames
//! are read here piece by piece; only operations, and tensors without their elements, are ever
//! decoded. What follows the graph is not read: it says nothing of weights.

use std::{ops::Range, sync::Arc};

use prost::Message;

use super::{
    graph::{Graph, Initializer, Node},
    initializer::{self, Payload},
    messages::{NodeProto, TensorProto},
    wire::{Field, Wire},
};
use crate::error::CheckpointError;

/// Bytes that are requested first, and after a leap.
const FIRST_WINDOW: u64 = 4096;
/// Most bytes that are requested at once.
const LARGEST_WINDOW: u64 = 1 << 20;
/// Bytes that are requested before the graph: no graph of a decoder is so short.
const TOP_WINDOW: u64 = 48;
/// Most bytes of an operation, and of a tensor without its elements.
const MAX_MESSAGE: u64 = 1 << 20;
/// Most operations and most tensors.
const MAX_PARTS: usize = 1 << 17;
/// Most inputs and outputs of an operation.
const MAX_VALUES: usize = 4096;

/// How far a file has been walked through.
#[derive(Debug)]
pub(super) struct Scan {
    file: Arc<str>,
    folder: String,
    place: u64, // of the first byte of `bytes`
    bytes: Vec<u8>,
    window: u64,
    graph_end: Option<u64>,
    tensor: Option<PartialTensor>,
    nodes: Vec<Node>,
    initializers: Vec<Initializer>,
}

/// A tensor that is being walked through.
#[derive(Debug)]
struct PartialTensor {
    end: u64,
    message: Vec<u8>,
    payloads: Vec<Payload>,
}

impl Scan {
    /// Of a file, and the folder of those with further data, with its slash.
    pub(super) fn new(file: &str, folder: &str) -> Self {
        Self {
            file: file.into(),
            folder: folder.to_owned(),
            place: 0,
            bytes: vec![],
            window: FIRST_WINDOW,
            graph_end: None,
            tensor: None,
            nodes: vec![],
            initializers: vec![],
        }
    }

    /// The bytes that come next.
    pub(super) fn next_range(&self) -> Range<u64> {
        let start = self.place + self.bytes.len() as u64;
        match self.graph_end {
            None => start..start.saturating_add(TOP_WINDOW),
            Some(end) => start..end.min(start.saturating_add(self.window)),
        }
    }

    /// Takes the bytes that were requested; the graph, once it is whole.
    pub(super) fn accept(&mut self, bytes: &[u8]) -> Result<Option<Graph>, CheckpointError> {
        self.bytes.extend_from_slice(bytes);
        self.window = (2 * self.window).min(LARGEST_WINDOW);
        let mut used = 0;
        while let Some(step) = self.step(used)? {
            used += step;
            if used >= self.bytes.len() {
                self.leap(used);
                used = 0;
            }
            if self.tensor.is_none() && self.graph_end == Some(self.place + used as u64) {
                let nodes = std::mem::take(&mut self.nodes);
                let initializers = std::mem::take(&mut self.initializers);
                return Ok(Some(Graph::new(Arc::clone(&self.file), nodes, initializers)));
            }
        }
        self.bytes.drain(..used);
        self.place += used as u64;
        if self.next_range().is_empty() {
            return Err(self.malformed(0, "a field ends after the one that holds it"));
        }
        Ok(None)
    }

    /// Goes on this many bytes, of which the last need not be here.
    fn leap(&mut self, bytes: usize) {
        if bytes > self.bytes.len() {
            self.window = FIRST_WINDOW;
        }
        self.place += bytes as u64;
        self.bytes.clear();
    }

    /// Takes one field, or the start of one that holds others: how many bytes to go on, or none
    /// where it is not here yet.
    fn step(&mut self, used: usize) -> Result<Option<usize>, CheckpointError> {
        const GRAPH: u64 = 7;
        let place = self.place + used as u64;
        if self.tensor.as_ref().is_some_and(|tensor| tensor.end == place) {
            self.finish_tensor(used)?;
            return Ok(Some(0));
        }
        let rest = self.bytes.get(used..).unwrap_or_default();
        let field = Field::read(rest).map_err(|what| self.malformed(used, what))?;
        let Some(field) = field else {
            return Ok(None);
        };
        let end = field.bytes().and_then(|bytes| place.checked_add(bytes));
        let end = end.ok_or_else(|| self.malformed(used, "a length is out of range"))?;
        let holder = self.tensor.as_ref().map(|tensor| tensor.end).or(self.graph_end);
        if holder.is_some_and(|holder| end > holder) {
            return Err(self.malformed(used, "a field ends after the one that holds it"));
        }
        if self.tensor.is_some() {
            return self.step_in_tensor(used, field);
        }
        if self.graph_end.is_some() {
            return self.step_in_graph(used, field);
        }
        if field.number == GRAPH && field.wire == Wire::Length {
            self.graph_end = Some(end);
            return self.go(used, field.header);
        }
        self.go(used, end - place)
    }

    fn step_in_graph(
        &mut self,
        used: usize,
        field: Field,
    ) -> Result<Option<usize>, CheckpointError> {
        const NODE: u64 = 1;
        const INITIALIZER: u64 = 5;
        const SPARSE_INITIALIZER: u64 = 15;
        match (field.number, field.wire) {
            (NODE, Wire::Length) => {
                let Some(message) = self.message(used, field)? else {
                    return Ok(None);
                };
                let node = NodeProto::decode(&message[payload_start(field)..]);
                let node = node.map_err(|error| self.malformed(used, &error.to_string()))?;
                self.add_node(used, node)?;
            }
            (INITIALIZER, Wire::Length) => {
                if self.initializers.len() == MAX_PARTS {
                    return Err(self.malformed(used, "the graph has too many tensors"));
                }
                let end = self.place + used as u64 + field.header + field.payload;
                self.tensor = Some(PartialTensor { end, message: vec![], payloads: vec![] });
                return self.go(used, field.header);
            }
            (SPARSE_INITIALIZER, _) => {
                return Err(self.malformed(used, "sparse tensors are not supported"));
            }
            _ => {}
        }
        self.go(used, field.header + field.payload)
    }

    fn step_in_tensor(
        &mut self,
        used: usize,
        field: Field,
    ) -> Result<Option<usize>, CheckpointError> {
        let start = self.place + used as u64 + field.header;
        let payload = Payload::of(field, start).map_err(|what| self.malformed(used, what))?;
        let message = match payload {
            Some(_) => None,
            None => match self.message(used, field)? {
                None => return Ok(None),
                message => message,
            },
        };
        let message = message.map(<[u8]>::to_vec).unwrap_or_default();
        if let Some(tensor) = &mut self.tensor {
            tensor.message.extend(message);
            tensor.payloads.extend(payload.filter(|payload| !payload.range.is_empty()));
            let parts = tensor.message.len() + tensor.payloads.len();
            if parts as u64 > MAX_MESSAGE {
                return Err(self.malformed(used, "a tensor's description is too long"));
            }
        }
        self.go(used, field.header + field.payload)
    }

    /// All bytes of a field that is decoded; none where they are not here yet.
    fn message(&self, used: usize, field: Field) -> Result<Option<&[u8]>, CheckpointError> {
        if field.payload > MAX_MESSAGE {
            let what =
                format!("a field has {} bytes, at most {MAX_MESSAGE} are read", field.payload);
            return Err(self.malformed(used, &what));
        }
        let bytes = usize::try_from(field.header + field.payload).unwrap_or(usize::MAX);
        Ok(self.bytes[used..].get(..bytes))
    }

    fn add_node(&mut self, used: usize, node: NodeProto) -> Result<(), CheckpointError> {
        let values = node.input.len() + node.output.len();
        if self.nodes.len() == MAX_PARTS || values > MAX_VALUES || node.op_type.is_empty() {
            return Err(self.malformed(used, "a node is empty, or one too many or too large"));
        }
        let node = Node::new(node).map_err(|error| self.malformed(used, &error.to_string()))?;
        self.nodes.push(node);
        Ok(())
    }

    fn finish_tensor(&mut self, used: usize) -> Result<(), CheckpointError> {
        let Some(PartialTensor { message, payloads, .. }) = self.tensor.take() else {
            return Ok(());
        };
        let tensor = TensorProto::decode(&message[..]);
        let tensor = tensor.map_err(|error| self.malformed(used, &error.to_string()))?;
        let found = initializer::check(&self.file, &self.folder, tensor, &payloads)?;
        self.initializers.push(found);
        Ok(())
    }

    fn go(&self, used: usize, bytes: u64) -> Result<Option<usize>, CheckpointError> {
        let bytes = usize::try_from(bytes);
        bytes.map(Some).map_err(|_| self.malformed(used, "a length is out of range"))
    }

    fn malformed(&self, used: usize, what: &str) -> CheckpointError {
        let (file, place) = (self.file.to_string(), self.place + used as u64);
        CheckpointError::Onnx { file, place, what: what.to_owned() }
    }
}

fn payload_start(field: Field) -> usize {
    usize::try_from(field.header).unwrap_or(usize::MAX)
}

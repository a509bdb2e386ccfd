//! Why a checkpoint was refused.

use crate::dtype::Dtype;
use setun_ops::OpsError;

/// Why a checkpoint, or a tensor of it, was refused. Each variant says what, where, what was
/// expected and what was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file that the model needs is not there.
    #[error("{file} is missing")]
    MissingFile {
        /// Its name.
        file: String,
    },

    /// A folder has neither one weight file nor an index of several.
    #[error("there is neither {file} nor {index}")]
    NoWeights {
        /// Name of the one file.
        file: String,
        /// Name of the index.
        index: String,
    },

    /// A file is a pickled program, as `torch.save` writes it.
    #[error(
        "{file} is a pickle, which can run anything when it is read; save the model as \
         safetensors: `model.save_pretrained(folder, safe_serialization=True)`"
    )]
    Pickle {
        /// Its name.
        file: String,
    },

    /// A file ends before its own header says so.
    #[error("{file} is truncated: {expected} bytes are needed, it ends after {found}")]
    Truncated {
        /// Its name.
        file: String,
        /// Bytes up to the end of what was read.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },

    /// An answer holds more bytes than were asked for.
    #[error("{file}: {expected} bytes were asked for, {found} were given")]
    TooManyBytes {
        /// Name of the file.
        file: String,
        /// Bytes asked for.
        expected: u64,
        /// Bytes given.
        found: u64,
    },

    /// An answer came where nothing was asked: the reader is finished, or has failed before.
    #[error("the reader was given bytes of which it wants none")]
    NothingWanted,

    /// A text is not JSON, or not of the form that the file must have.
    #[error("{file}, line {line}, column {column}: {what}")]
    Json {
        /// Name of the file.
        file: String,
        /// Line, from 1; 0 where the place is unknown.
        line: usize,
        /// Column, from 1; 0 where the place is unknown.
        column: usize,
        /// What is wrong.
        what: String,
    },

    /// A field of a JSON file is missing or out of its range.
    #[error("{file}: `{field}` is {found}, expected {expected}")]
    Field {
        /// Name of the file.
        file: String,
        /// The field, with the objects around it: `rope_scaling.factor`.
        field: String,
        /// What is possible.
        expected: String,
        /// What is there.
        found: String,
    },

    /// A kind of model that is read without error but cannot be computed here.
    #[error("{file}: {what} `{found}` is not supported; supported: {supported}")]
    UnsupportedModel {
        /// Name of the file.
        file: String,
        /// What it is: `architecture`, `rope_type`, …
        what: &'static str,
        /// Its value.
        found: String,
        /// The values that work.
        supported: &'static str,
    },

    /// A configuration names a size that no tensor has.
    #[error("{file}: `{field}` is {found}, but the tensors allow {limit} at most")]
    ConfigSize {
        /// Name of the file.
        file: String,
        /// The field.
        field: &'static str,
        /// Its value.
        found: usize,
        /// The largest that the tensors allow.
        limit: usize,
    },

    /// The length in a safetensors file's first eight bytes is too large to be read.
    #[error("the header of {file} has {found} bytes, at most {limit} are read")]
    HeaderTooLarge {
        /// Name of the file.
        file: String,
        /// Length in the file.
        found: u64,
        /// Length that is accepted.
        limit: u64,
    },

    /// An element type is not one of the safetensors format.
    #[error("{file}: tensor `{tensor}` has the unknown element type `{found}`")]
    UnknownDtype {
        /// Name of the file.
        file: String,
        /// Name of the tensor.
        tensor: String,
        /// The type's name in the file.
        found: String,
    },

    /// A tensor's offsets do not span what its shape and type need, or that cannot be addressed.
    #[error("{file}: tensor `{tensor}`, {dtype} {shape:?}, lies in {found:?}, which does not fit")]
    TensorSize {
        /// Name of the file.
        file: String,
        /// Name of the tensor.
        tensor: String,
        /// Its type.
        dtype: Dtype,
        /// Its shape.
        shape: Vec<u64>,
        /// First byte and end of its data, from the start of all data.
        found: [u64; 2],
    },

    /// Tensors overlap, or leave a gap.
    #[error("{file}: tensor `{tensor}` starts at byte {found} of the data, expected {expected}")]
    Offset {
        /// Name of the file.
        file: String,
        /// Name of the tensor.
        tensor: String,
        /// End of the tensor before it.
        expected: u64,
        /// Its start.
        found: u64,
    },

    /// A tensor's name occurs twice.
    #[error("{file}: tensor `{tensor}` occurs twice")]
    DuplicateTensor {
        /// Name of the file with the second.
        file: String,
        /// Name of the tensor.
        tensor: String,
    },

    /// An index names a file that is not beside it.
    #[error("{file} names the file `{found}`, expected a plain name that ends in .safetensors")]
    ShardName {
        /// Name of the index.
        file: String,
        /// The name in it.
        found: String,
    },

    /// An index promises a tensor that its file does not hold.
    #[error("{index} says that tensor `{tensor}` is in {file}, but it is not")]
    NotInShard {
        /// Name of the index.
        index: String,
        /// Name of the tensor.
        tensor: String,
        /// Name of the file.
        file: String,
    },

    /// A tensor that the model needs is not there.
    #[error("tensor `{name}` is missing{}", suggestion(similar))]
    MissingTensor {
        /// Its name.
        name: String,
        /// Names that resemble it, the most similar first.
        similar: Vec<String>,
    },

    /// A tensor's shape is not what the configuration implies.
    #[error("tensor `{tensor}` has shape {found:?}, expected {expected:?}")]
    Shape {
        /// Name of the tensor.
        tensor: String,
        /// What the configuration implies.
        expected: Vec<usize>,
        /// What the file says.
        found: Vec<usize>,
    },

    /// A tensor has another number of dimensions than its use needs.
    #[error("tensor `{tensor}` has shape {found:?}, expected {expected}")]
    Rank {
        /// Name of the tensor.
        tensor: String,
        /// What is expected, in words.
        expected: &'static str,
        /// What the file says.
        found: Vec<usize>,
    },

    /// A tensor's element type cannot serve its use.
    #[error("tensor `{tensor}` has element type {found}, expected {}", one_of(expected))]
    Dtype {
        /// Name of the tensor.
        tensor: String,
        /// Types that are possible.
        expected: Vec<Dtype>,
        /// Type in the file.
        found: Dtype,
    },

    /// Four rows share a byte, so their number must be a multiple of four.
    #[error("tensor `{tensor}` is packed, which needs a multiple of 4 rows; expected are {rows}")]
    PackedRows {
        /// Name of the tensor.
        tensor: String,
        /// Rows that the configuration implies.
        rows: usize,
    },

    /// A weight is none of −1, 0 and +1 times its scale.
    #[error("tensor `{tensor}` is not ternary at row {row}, column {column}")]
    NotTernary {
        /// Name of the tensor.
        tensor: String,
        /// Row of the unpacked matrix.
        row: usize,
        /// Column.
        column: usize,
    },

    /// What fills the last byte of a row of trits is not weight 0.
    #[error("tensor `{tensor}`, row {row}: column {column} is padding, and not that of weight 0")]
    Padding {
        /// Name of the tensor.
        tensor: String,
        /// Row of the matrix.
        row: usize,
        /// Column, at or beyond the number of columns.
        column: usize,
    },

    /// A container of a version that is newer than this program.
    #[error(
        "{file} is of version {found} of the .setun format, this program reads up to {newest}: \
         update setun, or convert the model again with this one"
    )]
    ContainerVersion {
        /// Name of the file.
        file: String,
        /// Its version.
        found: u16,
        /// The newest that is read.
        newest: u16,
    },

    /// A container's file that is not the first of several.
    #[error("{file} is part {part} of {parts} of a model: open the first, which names the others")]
    ContainerPart {
        /// Name of the file.
        file: String,
        /// Which it is, from 1.
        part: usize,
        /// How many there are.
        parts: usize,
    },

    /// A container's manifest is damaged.
    #[error("{file} is damaged: its manifest has SHA-256 {found}, expected {expected}")]
    ManifestHash {
        /// Name of the file.
        file: String,
        /// What its head says, in hexadecimal.
        expected: String,
        /// What was computed.
        found: String,
    },

    /// A chunk of a container is damaged.
    #[error("{file} is damaged: chunk {chunk} has SHA-256 {found}, expected {expected}")]
    ChunkHash {
        /// Name of the file.
        file: String,
        /// Index of the chunk in the manifest.
        chunk: usize,
        /// What the manifest says, in hexadecimal.
        expected: String,
        /// What was computed.
        found: String,
    },

    /// A chunk of a container's manifest is not one that the format allows.
    #[error("{file}: chunk {chunk} {what}")]
    Chunk {
        /// Name of the file.
        file: String,
        /// Index of the chunk, or the number of chunks.
        chunk: usize,
        /// What is wrong with it.
        what: String,
    },

    /// Content that cannot be written where it was planned.
    #[error("cannot write `{name}`: {what}")]
    Misplaced {
        /// Name of the tensor or file.
        name: String,
        /// Why not.
        what: String,
    },

    /// A matrix is scaled more finely than those of the same use in the first layer.
    #[error("tensor `{tensor}` has scales by row or group that the first layer's has not")]
    MixedScales {
        /// Name of the tensor.
        tensor: String,
    },

    /// An element is NaN or infinite.
    #[error("tensor `{tensor}`: element {index} is {found}, expected a finite number")]
    NotFinite {
        /// Name of the tensor.
        tensor: String,
        /// Index in row-major order.
        index: usize,
        /// The element.
        found: f32,
    },

    /// A scale is NaN, infinite or zero, or its reciprocal is infinite where it divides.
    #[error("scale `{tensor}` is {found}, expected a finite number other than zero")]
    Scale {
        /// Name of the tensor.
        tensor: String,
        /// Its value.
        found: f32,
    },

    /// A file is no ONNX model, or one that its own lengths contradict.
    #[error("{file}, byte {place}: {what}")]
    Onnx {
        /// Name of the file.
        file: String,
        /// Place of the field.
        place: u64,
        /// What is wrong.
        what: String,
    },

    /// A tensor of an ONNX graph is damaged, or of no use that is known.
    #[error("{file}: initializer `{tensor}`: {what}")]
    OnnxTensor {
        /// Name of the file.
        file: String,
        /// Its name in the graph.
        tensor: String,
        /// What is wrong.
        what: String,
    },

    /// An operation of an ONNX graph has weights that cannot be read.
    #[error("{file}: node `{node}` ({op}): {what}")]
    OnnxNode {
        /// Name of the file.
        file: String,
        /// Its name, or that of its output where it has none.
        node: String,
        /// The operation.
        op: String,
        /// What is wrong.
        what: String,
    },

    /// The memory for a tensor cannot be had.
    #[error("out of memory: tensor `{tensor}` needs {bytes} bytes")]
    OutOfMemory {
        /// Name of the tensor.
        tensor: String,
        /// Bytes of the whole tensor, or of what it is turned into.
        bytes: u64,
    },

    /// A GGUF file is not of the form that it must have.
    #[error("{file}, byte {at}: {what}")]
    Gguf {
        /// Name of the file.
        file: String,
        /// Place in the file.
        at: u64,
        /// What is wrong, what was expected.
        what: String,
    },

    /// A GGUF file holds a tensor of a type that is not read here.
    #[error("{file}: tensor `{tensor}` has the type {found}, which is not read; {way_out}")]
    GgufType {
        /// Name of the file.
        file: String,
        /// Name of the tensor.
        tensor: String,
        /// Name and number of the type.
        found: String,
        /// What can be done.
        way_out: &'static str,
    },

    /// The parts of a checkpoint do not belong together.
    #[error("{file} is not the part that its name says: {what}")]
    Part {
        /// Name of the file.
        file: String,
        /// What differs.
        what: String,
    },

    /// A format has no way to hold a part of the model.
    #[error("{format} cannot hold {what}; {way_out}")]
    Unwritable {
        /// Name of the format.
        format: &'static str,
        /// What it cannot hold.
        what: String,
        /// What can be done.
        way_out: &'static str,
    },

    /// A tensor cannot become a weight.
    #[error("tensor `{tensor}`: {source}")]
    Weight {
        /// Name of the tensor.
        tensor: String,
        /// Why.
        source: OpsError,
    },

    /// A kind of tokenizer that is read without error but cannot be computed, or written, here.
    #[error("{file}: {what} `{found}` is not supported; supported: {supported}")]
    UnsupportedTokenizer {
        /// Name of the file.
        file: String,
        /// What it is: `tokenizer.ggml.pre`, `normalizer`, …
        what: &'static str,
        /// Its value.
        found: String,
        /// The values that work.
        supported: String,
    },

    /// A list of the tokenizer has another length than the list of its tokens.
    #[error("{field} has {found} entries, expected {expected}, one for each token")]
    VocabularyLength {
        /// The list.
        field: &'static str,
        /// Number of tokens.
        expected: usize,
        /// Number of entries.
        found: usize,
    },

    /// A token is there twice.
    #[error("the token `{token}` has the ids {first} and {second}")]
    DuplicateToken {
        /// Its spelling.
        token: String,
        /// The first id.
        first: usize,
        /// The second.
        second: usize,
    },

    /// A special token that the tokenizer needs is missing, or its id is none of the vocabulary's.
    #[error("{field} is {found}, expected an id below {tokens}")]
    TokenId {
        /// The field.
        field: &'static str,
        /// The id, or why one is needed.
        found: String,
        /// Number of tokens.
        tokens: usize,
    },

    /// A merge is not two tokens that make a third.
    #[error("merge {index}, `{merge}`, needs the token `{missing}`, which is not there")]
    Merge {
        /// Its place, from 0.
        index: usize,
        /// The merge.
        merge: String,
        /// The first of its three tokens that is missing; empty if there is no space in the merge.
        missing: String,
    },
}

fn suggestion(similar: &[String]) -> String {
    if similar.is_empty() {
        return String::new();
    }
    format!("; there is `{}`", similar.join("`, `"))
}

fn one_of(dtypes: &[Dtype]) -> String {
    dtypes.iter().map(Dtype::to_string).collect::<Vec<_>>().join(" or ")
}

//! Why a checkpoint was refused.

use setun_ops::OpsError;

use crate::dtype::Dtype;

/// Why a checkpoint, or a tensor of it, was refused. Each variant says what, where, what was
/// expected and what was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are what the messages say of them")]
pub enum CheckpointError {
    /// A file that the model needs is not there.
    #[error("{file} is missing")]
    MissingFile { file: String },

    /// A folder has neither one weight file nor an index of several.
    #[error("there is neither {file} nor {index}")]
    NoWeights { file: String, index: String },

    /// A file is a pickled program, as `torch.save` writes it.
    #[error(
        "{file} is a pickle, which can run anything when it is read; save the model as \
         safetensors: `model.save_pretrained(folder, safe_serialization=True)`"
    )]
    Pickle { file: String },

    /// A file ends before its own header says so.
    #[error("{file} is truncated: {expected} bytes are needed, it ends after {found}")]
    Truncated { file: String, expected: u64, found: u64 },

    /// An answer holds more bytes than were asked for.
    #[error("{file}: {expected} bytes were requested, {found} were given")]
    TooManyBytes { file: String, expected: u64, found: u64 },

    /// An answer came where nothing was asked: the reader is finished, or has failed before.
    #[error("the reader was given bytes of which it wants none")]
    NothingWanted,

    /// A text is not JSON, or not of the form that the file must have.
    #[error("{file}, line {line}, column {column}: {what}")]
    Json { file: String, line: usize, column: usize, what: String },

    /// A field of a JSON file is missing or out of its range.
    #[error("{file}: `{field}` is {found}, expected {expected}")]
    Field { file: String, field: String, expected: String, found: String },

    /// A kind of model that is read without error but cannot be computed here.
    #[error("{file}: {what} `{found}` is not supported; supported: {supported}")]
    UnsupportedModel { file: String, what: &'static str, found: String, supported: &'static str },

    /// A configuration names a size that no tensor has.
    #[error("{file}: `{field}` is {found}, but the tensors allow {limit} at most")]
    ConfigSize { file: String, field: &'static str, found: usize, limit: usize },

    /// The length in a safetensors file's first eight bytes is too large to be read.
    #[error("the header of {file} has {found} bytes, at most {limit} are read")]
    HeaderTooLarge { file: String, found: u64, limit: u64 },

    /// An element type is not one of the safetensors format.
    #[error("{file}: tensor `{tensor}` has the unknown element type `{found}`")]
    UnknownDtype { file: String, tensor: String, found: String },

    /// A tensor's offsets do not span what its shape and type need, or that cannot be addressed.
    #[error("{file}: tensor `{tensor}`, {dtype} {shape:?}, lies in {found:?}, which does not fit")]
    TensorSize { file: String, tensor: String, dtype: Dtype, shape: Vec<u64>, found: [u64; 2] },

    /// Tensors overlap, or leave a gap.
    #[error("{file}: tensor `{tensor}` starts at byte {found} of the data, expected {expected}")]
    Offset { file: String, tensor: String, expected: u64, found: u64 },

    /// A tensor's name occurs twice.
    #[error("{file}: tensor `{tensor}` occurs twice")]
    DuplicateTensor { file: String, tensor: String },

    /// An index names a file that is not beside it.
    #[error("{file} names the file `{found}`, expected a plain name that ends in .safetensors")]
    ShardName { file: String, found: String },

    /// An index promises a tensor that its file does not hold.
    #[error("{index} says that tensor `{tensor}` is in {file}, but it is not")]
    NotInShard { index: String, tensor: String, file: String },

    /// A tensor that the model needs is not there.
    #[error("tensor `{name}` is missing{}", suggestion(similar))]
    MissingTensor { name: String, similar: Vec<String> },

    /// A tensor's shape is not what the configuration implies.
    #[error("tensor `{tensor}` has shape {found:?}, expected {expected:?}")]
    Shape { tensor: String, expected: Vec<usize>, found: Vec<usize> },

    /// A tensor has another number of dimensions than its use needs.
    #[error("tensor `{tensor}` has shape {found:?}, expected {expected}")]
    Rank { tensor: String, expected: &'static str, found: Vec<usize> },

    /// A tensor's element type cannot serve its use.
    #[error("tensor `{tensor}` has element type {found}, expected {}", one_of(expected))]
    Dtype { tensor: String, expected: Vec<Dtype>, found: Dtype },

    /// Four rows share a byte, so their number must be a multiple of four.
    #[error("tensor `{tensor}` is packed, which needs a multiple of 4 rows; expected are {rows}")]
    PackedRows { tensor: String, rows: usize },

    /// Groups of columns that share a scale do not divide a matrix.
    #[error("tensor `{tensor}` has {columns} columns, which are no whole groups of {group}")]
    Groups { tensor: String, columns: usize, group: usize },

    /// A weight is none of −1, 0 and +1 times its scale.
    #[error("tensor `{tensor}` is not ternary at row {row}, column {column}")]
    NotTernary { tensor: String, row: usize, column: usize },

    /// What fills the last byte of a row of trits is not weight 0.
    #[error("tensor `{tensor}`, row {row}: column {column} is padding, and not that of weight 0")]
    Padding { tensor: String, row: usize, column: usize },

    /// A container of a version that is newer than this program.
    #[error(
        "{file} is of version {found} of the .setun format, this program reads up to {newest}: \
         update setun, or convert the model again with this one"
    )]
    ContainerVersion { file: String, found: u16, newest: u16 },

    /// A container's file that is not the first of several.
    #[error("{file} is part {part} of {parts} of a model: open the first, which names the others")]
    ContainerPart { file: String, part: usize, parts: usize },

    /// A container's manifest is damaged.
    #[error("{file} is damaged: its manifest has SHA-256 {found}, expected {expected}")]
    ManifestHash { file: String, expected: String, found: String },

    /// A chunk of a container is damaged.
    #[error("{file} is damaged: chunk {chunk} has SHA-256 {found}, expected {expected}")]
    ChunkHash { file: String, chunk: usize, expected: String, found: String },

    /// A chunk of a container's manifest is not one that the format allows.
    #[error("{file}: chunk {chunk} {what}")]
    Chunk { file: String, chunk: usize, what: String },

    /// A file goes on behind its last byte that the format knows.
    #[error("{file} has {found} bytes, expected {expected}: what follows is no part of the model")]
    TrailingBytes { file: String, expected: u64, found: u64 },

    /// A finite number is so large that the model's results are not.
    #[error(
        "tensor `{tensor}` has the number {found:e}: results overflow where one is larger than \
         {limit:e}"
    )]
    TooLarge { tensor: String, found: f32, limit: f32 },

    /// Two finite numbers that are multiplied are so large that the model's results are not.
    #[error(
        "tensors `{gain}` and `{tensor}` have numbers whose product is {found:e}: results overflow \
         where it is larger than {limit:e}"
    )]
    TooLargeTogether { tensor: String, gain: String, found: f32, limit: f32 },

    /// A caller hands a writer another tensor than it planned with it: another kind or size, twice,
    /// not at all, or not in its turn.
    #[error("cannot write `{name}`: {what}")]
    Misplaced { name: String, what: String },

    /// A matrix is scaled more finely than those of the same use in the first layer.
    #[error("tensor `{tensor}` has scales by row or group that the first layer's has not")]
    MixedScales { tensor: String },

    /// An element is NaN or infinite.
    #[error("tensor `{tensor}`: element {index} is {found}, expected a finite number")]
    NotFinite { tensor: String, index: usize, found: f32 },

    /// A scale is NaN, infinite or zero, or its reciprocal is infinite where it divides.
    #[error("scale `{tensor}` is {found}, expected a finite number other than zero")]
    Scale { tensor: String, found: f32 },

    /// A file is no ONNX model, or one that its own lengths contradict.
    #[error("{file}, byte {place}: {what}")]
    Onnx { file: String, place: u64, what: String },

    /// A tensor of an ONNX graph is damaged, or of no use that is known.
    #[error("{file}: initializer `{tensor}`: {what}")]
    OnnxTensor { file: String, tensor: String, what: String },

    /// An operation of an ONNX graph has weights that cannot be read.
    #[error("{file}: node `{node}` ({op}): {what}")]
    OnnxNode { file: String, node: String, op: String, what: String },

    /// The memory for a tensor cannot be had.
    #[error("out of memory: tensor `{tensor}` needs {bytes} bytes")]
    OutOfMemory { tensor: String, bytes: u64 },

    /// A GGUF file is not of the form that it must have.
    #[error("{file}, byte {at}: {what}")]
    Gguf { file: String, at: u64, what: String },

    /// A GGUF file holds a tensor of a type that is not read here.
    #[error("{file}: tensor `{tensor}` has the type {found}, which is not read; {way_out}")]
    GgufType { file: String, tensor: String, found: String, way_out: &'static str },

    /// The parts of a checkpoint do not belong together.
    #[error("{file} is not the part that its name says: {what}")]
    Part { file: String, what: String },

    /// A format has no way to hold a part of the model, or a writer none to write it as is asked:
    /// something else can be chosen.
    #[error("{format} cannot hold {what}; {way_out}")]
    Unwritable { format: &'static str, what: String, way_out: &'static str },

    /// A tensor cannot become a weight.
    #[error("tensor `{tensor}`: {source}")]
    Weight { tensor: String, source: OpsError },

    /// A kind of tokenizer that is read without error but cannot be computed, or written, here.
    #[error("{file}: {what} `{found}` is not supported; supported: {supported}")]
    UnsupportedTokenizer { file: String, what: &'static str, found: String, supported: String },

    /// A list of the tokenizer has another length than the list of its tokens.
    #[error("{field} has {found} entries, expected {expected}, one for each token")]
    VocabularyLength { field: &'static str, expected: usize, found: usize },

    /// A token is there twice.
    #[error("the token `{token}` has the ids {first} and {second}")]
    DuplicateToken { token: String, first: usize, second: usize },

    /// A special token that the tokenizer needs is missing, or its id is none of the vocabulary's.
    #[error("{field} is {found}, expected an id below {tokens}")]
    TokenId { field: &'static str, found: String, tokens: usize },

    /// A merge is not two tokens that make a third.
    #[error("merge {index}, `{merge}`, needs the token `{missing}`, which is not there")]
    Merge { index: usize, merge: String, missing: String },
}

/// The kind of a [`CheckpointError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A file ends too soon.
    Truncated,
    /// The memory for a tensor cannot be had.
    OutOfMemory,
    /// There is no such file.
    NotFound,
    /// It is read without error and cannot be computed.
    Unsupported,
    /// It is damaged, or of no form that is read.
    Damaged,
}

impl CheckpointError {
    /// The kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Truncated { .. } => ErrorKind::Truncated,
            Self::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            Self::MissingFile { .. } | Self::NoWeights { .. } => ErrorKind::NotFound,
            Self::UnsupportedModel { .. } | Self::UnsupportedTokenizer { .. } => {
                ErrorKind::Unsupported
            }
            _ => ErrorKind::Damaged,
        }
    }

    /// The error for a field's value.
    pub(crate) fn field(
        file: &str,
        field: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let (file, field) = (file.to_owned(), field.into());
        Self::Field { file, field, expected: expected.into(), found: found.into() }
    }
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

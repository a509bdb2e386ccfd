//! The manifest as its JSON has it.

use serde::{Deserialize, Serialize};

/// All fields of version 1. Those that are not known are passed over.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct RawManifest {
    pub(super) version: u16,
    /// In a file that is not the first: which it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) part: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) licence: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) provenance: Option<Provenance>,
    pub(super) parts: Vec<ContainerFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<RawFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tensors: Vec<RawTensor>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) chunks: Vec<RawChunk>,
    /// Not in WebAssembly, which maps nothing.
    #[cfg(not(target_family = "wasm"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) image: Option<RawImage>,
}

/// Bytes of the first file that are not content.
#[cfg(not(target_family = "wasm"))]
#[derive(Deserialize, Serialize)]
pub(super) struct RawImage {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

#[derive(Deserialize, Serialize)]
pub(super) struct RawFile {
    pub(super) name: String,
    /// The file itself, or else its length in the chunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct RawTensor {
    pub(super) name: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct RawChunk {
    #[serde(default, skip_serializing_if = "is_first")]
    pub(super) part: usize,
    pub(super) offset: u64,
    pub(super) stored: u64,
    pub(super) bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) encoding: Option<String>,
    pub(super) sha256: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first(part: &usize) -> bool {
    *part == 0
}

/// Where a model came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Provenance {
    /// What was converted, as its user named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Name and version of the program that wrote the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// A file of a container.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ContainerFile {
    /// Its plain name; the first may be called otherwise by who opens it.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
}

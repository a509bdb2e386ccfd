//! From manifests of older versions to the newest, one version at a time.

use serde_json::{Map, Value, json};

use super::{FILE, Head};
use crate::error::CheckpointError;

/// Turns the manifest of one version into that of the next; none where it is not of the first.
type Migration = fn(&Head, Map<String, Value>) -> Option<Value>;

/// The steps from each version on.
const STEPS: [Migration; 1] = [v0_to_v1];

/// The manifest in the newest version's form.
pub(super) fn newest(
    file: &str,
    head: &Head,
    mut manifest: Value,
) -> Result<Value, CheckpointError> {
    for step in STEPS.iter().skip(usize::from(head.version)) {
        let migrated = match manifest {
            Value::Object(map) => step(head, map),
            _ => None,
        };
        manifest = migrated.ok_or_else(|| CheckpointError::Json {
            file: file.to_owned(),
            line: 0,
            column: 0,
            what: format!("not a manifest of version {}", head.version),
        })?;
    }
    Ok(manifest)
}

/// The draft had no hash in its head, one file, texts in an object, tensors with `type`, and
/// chunks as `[bytes, sha256]`, which followed the manifest without gaps.
fn v0_to_v1(head: &Head, mut manifest: Map<String, Value>) -> Option<Value> {
    let files: Vec<_> = match manifest.remove("files")? {
        Value::Object(files) => {
            files.into_iter().map(|(name, text)| json!({ "name": name, "text": text })).collect()
        }
        _ => return None,
    };
    let mut tensors = manifest.remove("tensors")?;
    for tensor in tensors.as_array_mut()? {
        let tensor = tensor.as_object_mut()?;
        let dtype = tensor.remove("type")?;
        tensor.insert("dtype".to_owned(), dtype);
    }
    let mut offset = head.manifest().end;
    let mut chunks = vec![];
    for chunk in manifest.get("chunks")?.as_array()? {
        let bytes = chunk.get(0)?.as_u64()?;
        let sha256 = chunk.get(1)?;
        chunks.push(json!({ "offset": offset, "stored": bytes, "bytes": bytes, "sha256": sha256 }));
        offset = offset.checked_add(bytes)?;
    }
    let licence = manifest.remove("license").unwrap_or(Value::Null);
    Some(json!({
        "version": 1,
        "licence": licence,
        "parts": [{ "file": FILE, "bytes": offset }],
        "files": files,
        "tensors": tensors,
        "chunks": chunks,
    }))
}

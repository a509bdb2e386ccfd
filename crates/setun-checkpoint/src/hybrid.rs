//! Tensor names of the hybrid family (Qwen3.5, 3.6 and 3.8) in folders. The text model's tensors get the names
//! that they have in folders of the text model alone. The others are skipped.

use serde_json::{Map, Value};

use crate::{
    config::QWEN35_TEXT, error::CheckpointError, files, header, json, readers::HeaderContents,
    tensor::TensorInfo, warning::Warning, write::config_json,
};

/// Keeps the tensors of the text model, by their names in a folder without images.
pub(crate) fn keep_text_model(found: &mut HeaderContents) -> Result<(), CheckpointError> {
    let Some(config) = found.config.as_mut().filter(|config| config.architecture == QWEN35_TEXT)
    else {
        return Ok(());
    };
    let is_of = |info: &TensorInfo, part| other_part(&info.name) == Some(part);
    let is_used = |info: &TensorInfo| other_part(&info.name).is_none();
    let (mut tensors, others): (Vec<_>, Vec<_>) =
        std::mem::take(&mut found.tensors).into_iter().partition(is_used);
    for info in &mut tensors {
        info.name = text_name(&info.name);
    }
    header::check_unique(&tensors)?;
    let is_turned = flatten_convolutions(&mut tensors);
    let has_mtp = others.iter().any(|info| is_of(info, Part::Mtp));
    let text: Map<String, Value> =
        json::read(files::CONFIG, found.files.get(files::CONFIG).unwrap_or_default())?;
    // Loaders of MLX add the 1 by this rule, too.
    let has_ones = config.unit_norms && is_turned && !has_mtp;
    config.unit_norms &= !has_ones;
    if has_ones || text.contains_key("text_config") {
        // What is written from here on has the text model's fields where all programs look for them.
        found.files.insert(files::CONFIG, config_json(config)?.into_bytes());
    }
    if let Some(first) = others.first() {
        let vision = others.iter().filter(|info| is_of(info, Part::Vision)).count();
        found.warnings.extend(passed_over(&first.file, vision, others.len() - vision));
    }
    found.tensors = tensors;
    Ok(())
}

/// Parts of a checkpoint besides the text model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Vision,
    Mtp,
}

fn other_part(name: &str) -> Option<Part> {
    let name = name.strip_prefix("model.").unwrap_or(name);
    let name = name.strip_prefix("language_model.").unwrap_or(name);
    let name = name.strip_prefix("model.").unwrap_or(name);
    let is_in = |part: &str| name.strip_prefix(part).is_some_and(|rest| rest.starts_with('.'));
    if is_in("visual") || is_in("vision_tower") {
        Some(Part::Vision)
    } else if is_in("mtp") {
        Some(Part::Mtp)
    } else {
        None
    }
}

/// The note on tensors that are there and not used; none where there are none.
pub(crate) fn passed_over(file: &str, vision: usize, mtp: usize) -> Option<Warning> {
    let parts = [(vision, "the vision tower"), (mtp, "the MTP head")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, name)| format!("{name} ({count} tensors)")).collect();
    let verb = match parts.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    Some(Warning {
        file: file.to_owned(),
        what: format!("{} {verb} not used", parts.join(" and ")),
    })
}

/// `model.language_model.x` of transformers and `language_model.model.x` of MLX are `model.x`.
fn text_name(name: &str) -> String {
    match name.strip_prefix("model.language_model.") {
        Some(rest) => format!("model.{rest}"),
        None => name.strip_prefix("language_model.").unwrap_or(name).to_owned(),
    }
}

/// Gives the convolutions' weights the shape `[channels, kernel]`, in which they lie. Whether one had
/// MLX's shape `[channels, kernel, 1]` and not transformers' `[channels, 1, kernel]`.
fn flatten_convolutions(tensors: &mut [TensorInfo]) -> bool {
    let mut is_turned = false;
    let is_convolution = |info: &&mut TensorInfo| info.name.ends_with(".linear_attn.conv1d.weight");
    for info in tensors.iter_mut().filter(is_convolution) {
        info.shape = match info.shape[..] {
            [channels, 1, kernel] => vec![channels, kernel],
            [channels, kernel, 1] => {
                is_turned = true;
                vec![channels, kernel]
            }
            _ => continue,
        };
    }
    is_turned
}

//! Both spellings of the rotary embedding: `rope_parameters`, and `rope_theta` with
//! `rope_scaling`.

use super::{MAX_CONTEXT, RopeConfig, RopeScaling};
use crate::{error::CheckpointError, generation::number, json::Fields};

/// Reads what is there; `rope_parameters` goes before the older spelling.
pub(super) fn parse(
    fields: &Fields<'_>,
    default_theta: f64,
) -> Result<RopeConfig, CheckpointError> {
    let positive = |x: f64| x > 0.0;
    let parameters = fields.object("rope_parameters")?;
    let theta = match parameters.number("rope_theta", "a number above 0", positive)? {
        Some(theta) => theta,
        None => fields.number("rope_theta", "a number above 0", positive)?.unwrap_or(default_theta),
    };
    let scaling =
        if kind(&parameters)?.is_some() { parameters } else { fields.object("rope_scaling")? };
    refuse_partial(fields)?;
    refuse_partial(&scaling)?;
    Ok(RopeConfig { theta, scaling: parse_scaling(&scaling)? })
}

fn parse_scaling(scaling: &Fields<'_>) -> Result<RopeScaling, CheckpointError> {
    match kind(scaling)? {
        None if scaling.has("factor") => Err(scaling.absent("rope_type", "a string")),
        None | Some("default") => Ok(RopeScaling::Default),
        Some("llama3") => parse_llama3(scaling),
        Some(found) => Err(CheckpointError::UnsupportedModel {
            file: scaling.file().to_owned(),
            what: "rope_type",
            found: found.to_owned(),
            supported: "default, llama3",
        }),
    }
}

fn parse_llama3(scaling: &Fields<'_>) -> Result<RopeScaling, CheckpointError> {
    const POSITIVE: &str = "a number above 0";
    let factor = |key| {
        number(scaling, key, POSITIVE, |x| x > 0.0)?.ok_or_else(|| scaling.absent(key, POSITIVE))
    };
    let (low, high) = (factor("low_freq_factor")?, factor("high_freq_factor")?);
    if low >= high {
        let expected = format!("a number above low_freq_factor, {low}");
        return Err(scaling.error("high_freq_factor", &expected, &high.to_string()));
    }
    let original = "original_max_position_embeddings";
    Ok(RopeScaling::Llama3 {
        factor: factor("factor")?,
        low_freq_factor: low,
        high_freq_factor: high,
        original_context: scaling
            .size(original, MAX_CONTEXT)?
            .ok_or_else(|| scaling.absent(original, "a whole number"))?,
    })
}

/// `rope_type`, or `type` as older files have it.
fn kind<'a>(scaling: &Fields<'a>) -> Result<Option<&'a str>, CheckpointError> {
    Ok(scaling.text("rope_type")?.or(scaling.text("type")?))
}

/// Heads are rotated whole.
fn refuse_partial(fields: &Fields<'_>) -> Result<(), CheckpointError> {
    match fields.number("partial_rotary_factor", "a number", |_| true)? {
        Some(factor) if factor != 1.0 => Err(CheckpointError::UnsupportedModel {
            file: fields.file().to_owned(),
            what: "partial_rotary_factor",
            found: factor.to_string(),
            supported: "1",
        }),
        _ => Ok(()),
    }
}

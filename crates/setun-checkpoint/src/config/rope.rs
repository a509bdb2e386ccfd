//! Both spellings of the rotary embedding: `rope_parameters`, and `rope_theta` with
//! `rope_scaling`.

use super::{MAX_CONTEXT, RopeConfig, RopeScaling, family::Family, unsupported};
use crate::{error::CheckpointError, generation::number, json::Fields};

/// Reads what is there; `rope_parameters` goes before the older spelling.
pub(super) fn parse(
    fields: &Fields<'_>,
    family: Family,
    head_dim: usize,
) -> Result<RopeConfig, CheckpointError> {
    let positive = |x: f64| x > 0.0;
    let parameters = fields.object("rope_parameters")?;
    let theta = match parameters.number("rope_theta", "a number above 0", positive)? {
        Some(theta) => theta,
        None => fields
            .number("rope_theta", "a number above 0", positive)?
            .unwrap_or(family.defaults().rope_theta),
    };
    let part = rotated_part(&parameters)?;
    let scaling =
        if kind(&parameters)?.is_some() { parameters } else { fields.object("rope_scaling")? };
    let part = part.or(rotated_part(&scaling)?).or(rotated_part(fields)?);
    let part = part.unwrap_or(family.rotated_part());
    if part != 1.0 && family.rotated_part() == 1.0 {
        return Err(unsupported(fields, PART, &part.to_string(), "1"));
    }
    let dimensions = rotated_columns(fields, head_dim, part)?;
    Ok(RopeConfig { theta, dimensions, scaling: parse_scaling(&scaling)? })
}

/// The field of the part of a head's columns that is rotated.
const PART: &str = "partial_rotary_factor";

fn rotated_part(fields: &Fields<'_>) -> Result<Option<f64>, CheckpointError> {
    fields.number(PART, "a number above 0, at most 1", |part| part > 0.0 && part <= 1.0)
}

/// Rotated columns of a head: they turn in pairs.
fn rotated_columns(
    fields: &Fields<'_>,
    head_dim: usize,
    part: f64,
) -> Result<usize, CheckpointError> {
    // The part may have been rounded to a decimal number.
    let is_part = |columns: &usize| (part_of(*columns, head_dim) - part).abs() < 1e-6;
    let columns = (2..=head_dim).step_by(2).find(is_part);
    let expected = format!("an even number of columns of a head of {head_dim}");
    columns.ok_or_else(|| fields.error(PART, &expected, &part.to_string()))
}

/// The part of a head's columns that `columns` of them are.
pub(crate) fn part_of(columns: usize, head_dim: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    number(columns) / number(head_dim)
}

fn parse_scaling(scaling: &Fields<'_>) -> Result<RopeScaling, CheckpointError> {
    match kind(scaling)? {
        None if scaling.has("factor") => Err(scaling.absent("rope_type", "a string")),
        None | Some("default") => Ok(RopeScaling::Default),
        Some("llama3") => parse_llama3(scaling),
        Some("yarn") => parse_yarn(scaling),
        Some(found) => Err(unsupported(scaling, "rope_type", found, "default, llama3, yarn")),
    }
}

const POSITIVE: &str = "a number above 0";

fn parse_llama3(scaling: &Fields<'_>) -> Result<RopeScaling, CheckpointError> {
    let (low, high) = (factor(scaling, "low_freq_factor")?, factor(scaling, "high_freq_factor")?);
    if low >= high {
        let expected = format!("a number above low_freq_factor, {low}");
        return Err(scaling.error("high_freq_factor", &expected, &high.to_string()));
    }
    Ok(RopeScaling::Llama3 {
        factor: factor(scaling, "factor")?,
        low_freq_factor: low,
        high_freq_factor: high,
        original_context: original_context(scaling)?,
    })
}

fn parse_yarn(scaling: &Fields<'_>) -> Result<RopeScaling, CheckpointError> {
    let positive = |key| number(scaling, key, POSITIVE, |x| x > 0.0);
    for (what, is_other) in [
        ("mscale", scaling.has("mscale") || scaling.has("mscale_all_dim")),
        ("truncate", scaling.flag("truncate")? == Some(false)),
    ] {
        if is_other {
            let found = if what == "truncate" { "false" } else { "a factor of its own" };
            return Err(unsupported(scaling, what, found, "yarn without it"));
        }
    }
    let (fast, slow) = (positive("beta_fast")?, positive("beta_slow")?);
    Ok(RopeScaling::Yarn {
        factor: factor(scaling, "factor")?,
        beta_fast: fast.unwrap_or(32.0),
        beta_slow: slow.unwrap_or(1.0),
        original_context: original_context(scaling)?,
        attention_factor: positive("attention_factor")?,
    })
}

fn factor(scaling: &Fields<'_>, key: &str) -> Result<f32, CheckpointError> {
    number(scaling, key, POSITIVE, |x| x > 0.0)?.ok_or_else(|| scaling.absent(key, POSITIVE))
}

fn original_context(scaling: &Fields<'_>) -> Result<usize, CheckpointError> {
    let key = "original_max_position_embeddings";
    scaling.size(key, MAX_CONTEXT)?.ok_or_else(|| scaling.absent(key, "a whole number"))
}

/// `rope_type`, or `type` as older files have it.
fn kind<'a>(scaling: &Fields<'a>) -> Result<Option<&'a str>, CheckpointError> {
    Ok(scaling.text("rope_type")?.or(scaling.text("type")?))
}

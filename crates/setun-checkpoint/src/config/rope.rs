//! Both spellings of the rotary embedding: `rope_parameters`, and `rope_theta` with
//! `rope_scaling`.

use super::{MAX_CONTEXT, RopeConfig, RopeScaling, unsupported};
use crate::{error::CheckpointError, generation::number, json::Fields};

/// Reads what is there; `rope_parameters` goes before the older spelling.
pub(super) fn parse(
    fields: &Fields<'_>,
    default_theta: f64,
    head_dim: usize,
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
    Ok(RopeConfig { theta, dimensions: head_dim, scaling: parse_scaling(&scaling)? })
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

/// Heads are rotated whole.
fn refuse_partial(fields: &Fields<'_>) -> Result<(), CheckpointError> {
    match fields.number("partial_rotary_factor", "a number", |_| true)? {
        Some(factor) if factor != 1.0 => {
            Err(unsupported(fields, "partial_rotary_factor", &factor.to_string(), "1"))
        }
        _ => Ok(()),
    }
}

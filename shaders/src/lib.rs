//! GPU sources of setun, one file an operation, as constants.
//!
//! A shader has the name of its operation and names its twin, the scalar definition in
//! `setun-ops`. This crate calls no GPU: it carries the sources, and its tests parse and
//! validate them and compare their constants with those of the packed layout.

/// A WGSL source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shader {
    /// Name of the operation.
    pub name: &'static str,
    /// The source.
    pub wgsl: &'static str,
}

/// `ternary_matmul`: one linear layer over quantized rows.
pub const TERNARY_MATMUL: Shader =
    Shader { name: "ternary_matmul", wgsl: include_str!("../wgsl/ternary_matmul.wgsl") };

/// `rms_norm`: root-mean-square norm of each row.
pub const RMS_NORM: Shader =
    Shader { name: "rms_norm", wgsl: include_str!("../wgsl/rms_norm.wgsl") };

/// All shaders.
pub const ALL: [Shader; 2] = [TERNARY_MATMUL, RMS_NORM];

#[cfg(test)]
mod tests {
    use naga::{
        front::wgsl,
        valid::{Capabilities, ValidationFlags, Validator},
    };
    use setun_ops::{fold, ternary};

    use super::*;

    #[test]
    fn every_shader_is_valid() {
        for shader in ALL {
            let module = wgsl::parse_str(shader.wgsl)
                .unwrap_or_else(|error| panic!("{}", error.emit_to_string(shader.wgsl)));
            Validator::new(ValidationFlags::all(), Capabilities::empty())
                .validate(&module)
                .unwrap_or_else(|error| panic!("{}", error.emit_to_string(shader.wgsl)));
            assert!(!module.entry_points.is_empty(), "{} has an entry point", shader.name);
        }
    }

    #[test]
    fn every_shader_names_its_twin() {
        for Shader { name, wgsl } in ALL {
            assert!(wgsl.contains(&format!("crates/setun-ops/src/{name}.rs")), "{name}");
        }
    }

    #[test]
    fn constants_are_those_of_the_layout() {
        let constant = |shader: Shader, name: &str, value: usize| {
            let line = format!("const {name}: u32 = {value}u;");
            assert!(shader.wgsl.contains(&line), "{}: {line}", shader.name);
        };
        constant(TERNARY_MATMUL, "BLOCK_WORDS", ternary::BLOCK_BYTES / 4);
        constant(TERNARY_MATMUL, "PLANE_WORDS", ternary::PLANE_COLUMNS / 4);
        constant(RMS_NORM, "LANES", fold::LANES);
    }
}

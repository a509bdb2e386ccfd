//! Every shader is valid WGSL, names its twin, and has the constants of the packed layout.

use naga::{
    front::wgsl,
    valid::{Capabilities, ValidationFlags, Validator},
};
use setun::ops::{fold, ternary};
use setun_shaders::{ALL, RMS_NORM, Shader, TERNARY_MATMUL};

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

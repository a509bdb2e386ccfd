//! Every shader names its twin, and has the constants of the packed layout.

use setun::ops::ternary;
use setun_shaders::{ALL, Shader, cuda_parts, parts};

#[test]
fn every_shader_names_its_twin() {
    for Shader { name, wgsl, cuda } in ALL {
        for source in [wgsl, cuda] {
            assert!(source.contains(&format!("crates/setun-ops/src/{name}.rs")), "{name}");
        }
    }
}

#[test]
fn constants_are_those_of_the_layout() {
    let constant = |name: &str, value: usize| {
        let line = format!("const {name}: u32 = {value}u;");
        assert!(parts::LINEAR.contains(&line), "{line}");
        let line = format!("const u32 {name} = {value};");
        assert!(cuda_parts::LINEAR.contains(&line), "{line}");
    };
    constant("BLOCK_WORDS", ternary::BLOCK_BYTES / 4);
    constant("BLOCK_QUADS", ternary::BLOCK_BYTES / 16);
    constant("PLANES", ternary::BLOCK_COLUMNS / ternary::PLANE_COLUMNS);
    constant("PLANE_QUADS", ternary::PLANE_COLUMNS / 16);
}

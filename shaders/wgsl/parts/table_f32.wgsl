// A table of f32: four a vector.

const FOURS: u32 = 1u;

fn table_four(quad: vec4<u32>, four: u32) -> vec4<f32> { return bitcast<vec4<f32>>(quad); }
fn table_scale(row: u32, stride: u32) -> f32 { return 1.0; }

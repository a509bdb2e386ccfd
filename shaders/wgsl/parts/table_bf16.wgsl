// A table of bf16, the upper halves of f32: eight a vector.

const FOURS: u32 = 2u;

fn table_four(quad: vec4<u32>, four: u32) -> vec4<f32> {
    let low = quad[2u * four];
    let high = quad[2u * four + 1u];
    return bitcast<vec4<f32>>(vec4<u32>(low << 16u, low & 0xffff0000u, high << 16u, high & 0xffff0000u));
}

fn table_scale(row: u32, stride: u32) -> f32 { return 1.0; }

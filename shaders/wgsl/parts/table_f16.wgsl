// A table of f16: eight a vector.

const FOURS: u32 = 2u;

fn table_four(quad: vec4<u32>, four: u32) -> vec4<f32> {
    let low = quad[2u * four];
    let high = quad[2u * four + 1u];
    return vec4<f32>(
        widen_f16(low & 0xffffu), widen_f16(low >> 16u), widen_f16(high & 0xffffu), widen_f16(high >> 16u));
}

fn table_scale(row: u32, stride: u32) -> f32 { return 1.0; }

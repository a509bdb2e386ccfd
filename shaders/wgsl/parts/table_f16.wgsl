// A table of f16: a row is `stride` words of two.

fn table_four(row: u32, stride: u32, four: u32) -> vec4<f32> {
    let at = row * stride + four * 2u;
    let low = table[at];
    let high = table[at + 1u];
    return vec4<f32>(
        widen_f16(low & 0xffffu), widen_f16(low >> 16u), widen_f16(high & 0xffffu), widen_f16(high >> 16u));
}

fn table_scale(row: u32, stride: u32) -> f32 { return 1.0; }

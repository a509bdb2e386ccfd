// A table of bf16: a row is `stride` words of two.

fn table_four(row: u32, stride: u32, four: u32) -> vec4<f32> {
    let at = row * stride + four * 2u;
    let low = table[at];
    let high = table[at + 1u];
    return bitcast<vec4<f32>>(vec4<u32>(low << 16u, low & 0xffff0000u, high << 16u, high & 0xffff0000u));
}

fn table_scale(row: u32, stride: u32) -> f32 { return 1.0; }

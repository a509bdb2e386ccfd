// A table of f32: a row is `stride` words.

fn table_four(row: u32, stride: u32, four: u32) -> vec4<f32> {
    let at = row * stride + four * 4u;
    return bitcast<vec4<f32>>(vec4<u32>(table[at], table[at + 1u], table[at + 2u], table[at + 3u]));
}

fn table_scale(row: u32, stride: u32) -> f32 { return 1.0; }

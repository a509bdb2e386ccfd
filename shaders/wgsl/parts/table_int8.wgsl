// A table of int8 rows: sixteen codes a vector, the row's scale in its last one.

const FOURS: u32 = 4u;

fn table_four(quad: vec4<u32>, four: u32) -> vec4<f32> {
    let codes = quad[four];
    let bytes = vec4<u32>(codes << 24u, codes << 16u, codes << 8u, codes);
    return vec4<f32>(bitcast<vec4<i32>>(bytes) >> vec4<u32>(24u));
}

fn table_scale(row: u32, stride: u32) -> f32 {
    return bitcast<f32>(table[row * stride + stride - 1u].x);
}

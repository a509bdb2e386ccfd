// Vectors of a cache of f16: head_dim / 2 words.

fn key_at(vector: u32, i: u32) -> f32 {
    return widen_f16((keys[vector * (shape.head_dim / 2u) + i / 2u] >> (16u * (i % 2u))) & 0xffffu);
}
fn value_at(vector: u32, i: u32) -> f32 {
    return widen_f16((values[vector * (shape.head_dim / 2u) + i / 2u] >> (16u * (i % 2u))) & 0xffffu);
}
fn key_scale(vector: u32) -> f32 { return 1.0; }
fn value_scale(vector: u32) -> f32 { return 1.0; }

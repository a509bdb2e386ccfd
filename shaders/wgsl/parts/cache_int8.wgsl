// Vectors of a cache of int8: words of four codes, then a word for the scale.

fn vector_words() -> u32 { return (shape.head_dim + 3u) / 4u + 1u; }
fn code_of(word: u32, i: u32) -> f32 { return f32(bitcast<i32>(word << (24u - 8u * (i % 4u))) >> 24u); }

fn key_at(vector: u32, i: u32) -> f32 { return code_of(keys[vector * vector_words() + i / 4u], i); }
fn value_at(vector: u32, i: u32) -> f32 { return code_of(values[vector * vector_words() + i / 4u], i); }
fn key_scale(vector: u32) -> f32 { return bitcast<f32>(keys[(vector + 1u) * vector_words() - 1u]); }
fn value_scale(vector: u32) -> f32 { return bitcast<f32>(values[(vector + 1u) * vector_words() - 1u]); }

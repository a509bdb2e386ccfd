// Vectors of a cache of int8: words of four codes, zeros beyond the last, then a word for the scale.

fn vector_words() -> u32 { return (shape.head_dim + 3u) / 4u + 1u; }
fn key_four(vector: u32, four: u32) -> vec4<f32> { return four_codes_of(keys[vector * vector_words() + four]); }
fn value_four(vector: u32, four: u32) -> vec4<f32> { return four_codes_of(values[vector * vector_words() + four]); }
fn key_scale(vector: u32) -> f32 { return bitcast<f32>(keys[(vector + 1u) * vector_words() - 1u]); }
fn value_scale(vector: u32) -> f32 { return bitcast<f32>(values[(vector + 1u) * vector_words() - 1u]); }

fn four_codes_of(word: u32) -> vec4<f32> {
    let bytes = vec4<u32>(word << 24u, word << 16u, word << 8u, word);
    return vec4<f32>(bitcast<vec4<i32>>(bytes) >> vec4<u32>(24u));
}

// Vectors of a cache of f16: head_dim / 2 words.

fn key_four(vector: u32, four: u32) -> vec4<f32> {
    let at = vector * (shape.head_dim / 2u) + 2u * four;
    if !is_whole(four) {
        return vec4<f32>(two_of(keys[at]), 0.0, 0.0);
    }
    return vec4<f32>(two_of(keys[at]), two_of(keys[at + 1u]));
}

fn value_four(vector: u32, four: u32) -> vec4<f32> {
    let at = vector * (shape.head_dim / 2u) + 2u * four;
    if !is_whole(four) {
        return vec4<f32>(two_of(values[at]), 0.0, 0.0);
    }
    return vec4<f32>(two_of(values[at]), two_of(values[at + 1u]));
}

fn two_of(word: u32) -> vec2<f32> { return vec2<f32>(widen_f16(word & 0xffffu), widen_f16(word >> 16u)); }
fn key_scale(vector: u32) -> f32 { return 1.0; }
fn value_scale(vector: u32) -> f32 { return 1.0; }

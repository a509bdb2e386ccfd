// Vectors of a cache of f32: head_dim words.

fn key_four(vector: u32, four: u32) -> vec4<f32> {
    let at = vector * shape.head_dim + 4u * four;
    let low = vec2<u32>(keys[at], keys[at + 1u]);
    if !is_whole(four) {
        return vec4<f32>(bitcast<vec2<f32>>(low), 0.0, 0.0);
    }
    return bitcast<vec4<f32>>(vec4<u32>(low, keys[at + 2u], keys[at + 3u]));
}

fn value_four(vector: u32, four: u32) -> vec4<f32> {
    let at = vector * shape.head_dim + 4u * four;
    let low = vec2<u32>(values[at], values[at + 1u]);
    if !is_whole(four) {
        return vec4<f32>(bitcast<vec2<f32>>(low), 0.0, 0.0);
    }
    return bitcast<vec4<f32>>(vec4<u32>(low, values[at + 2u], values[at + 3u]));
}

fn key_scale(vector: u32) -> f32 { return 1.0; }
fn value_scale(vector: u32) -> f32 { return 1.0; }

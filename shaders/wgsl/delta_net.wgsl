// delta_net: a gated delta net over the recurrent state of each sequence
//
// Twin:      crates/setun-ops/src/delta_net.rs
// Layout:    of matrices: [states, value_heads, key_dim, value_dim], those of a key head together; of the history:
//            [states, ring, key_heads] of queries, keys, values, b and a, the row of a position at its number modulo ring
// Grid:      as the parts say: parts/delta_net_rule.wgsl, then parts/delta_net_output.wgsl

struct Shape {
    key_heads: u32,
    value_heads: u32,
    key_dim: u32,
    value_dim: u32,
    kernel: u32,        // rows that a channel's convolution sees
    tiled: u32,         // order of value heads in the input
    tiled_output: u32,  // and in the result
    ring: u32,
    query_scale: f32,
    eps: f32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> x: array<f32>;             // [rows]: queries, keys, values, z, b, a
@group(0) @binding(3) var<storage, read> vector: array<f32>;        // taps [kernel, channels]; of the output: gain [value_dim]
@group(0) @binding(4) var<storage, read> decays: array<f32>;        // [value_heads]
@group(0) @binding(5) var<storage, read> dt_bias: array<f32>;       // [value_heads]
@group(0) @binding(6) var<storage, read_write> matrices: array<f32>;
@group(0) @binding(7) var<storage, read_write> history: array<f32>;
@group(0) @binding(8) var<storage, read_write> out: array<f32>;     // [rows, value_heads × value_dim]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    run(group, lane);
}

fn channels() -> u32 { return 2u * shape.key_heads * shape.key_dim + shape.value_heads * shape.value_dim; }
fn input_width() -> u32 { return channels() + shape.value_heads * (shape.value_dim + 2u); }
fn group_heads() -> u32 { return shape.value_heads / shape.key_heads; }

// Place of the value head `index` of those that share a key head.
fn head_place(tiled: u32, key_head: u32, index: u32) -> u32 {
    return select(key_head * group_heads() + index, index * shape.key_heads + key_head, tiled != 0u);
}

// Numbers of a key head that a later row may need again: queries, keys, then values, b and a of each value head.
fn history_of_key_head() -> u32 { return 2u * shape.key_dim + group_heads() * (shape.value_dim + 2u); }

// Column of the input of one of them.
fn input_column(key_head: u32, number: u32) -> u32 {
    if number < 2u * shape.key_dim {
        let keys = number / shape.key_dim * shape.key_heads;
        return (keys + key_head) * shape.key_dim + number % shape.key_dim;
    }
    let own = number - 2u * shape.key_dim;
    let values = group_heads() * shape.value_dim;
    if own < values {
        let head = head_place(shape.tiled, key_head, own / shape.value_dim);
        return 2u * shape.key_heads * shape.key_dim + head * shape.value_dim + own % shape.value_dim;
    }
    let rest = own - values;
    let head = head_place(shape.tiled, key_head, rest % group_heads());
    return channels() + shape.value_heads * (shape.value_dim + rest / group_heads()) + head;
}

fn history_at(state: u32, slot: u32, key_head: u32, number: u32) -> u32 {
    return ((state * shape.ring + slot) * shape.key_heads + key_head) * history_of_key_head() + number;
}

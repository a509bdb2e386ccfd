// embed: out[row] = the table's row of the token
//
// Twin:      crates/setun-ops/src/embed.rs
// Grid:      one workgroup a row

const LANES: u32 = 64u;

struct Shape {
    width: u32,
    stride: u32,    // vectors of a row of the table
    first: u32,     // first token of this part of the table
    tokens: u32,    // tokens of this part
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;   // [rows, width]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    if row >= batch_rows() {
        return;
    }
    let token = token_of(row) - shape.first;
    if token >= shape.tokens {
        return;
    }
    let scale = table_scale(token, shape.stride);
    for (var four = lane; four * 4u < shape.width; four += LANES) {
        let values = table_four(table[token * shape.stride + four / FOURS], four % FOURS) * scale;
        for (var i = 0u; i < 4u && four * 4u + i < shape.width; i += 1u) {
            out[row * shape.width + four * 4u + i] = values[i];
        }
    }
}

// head_norm: a root-mean-square norm over each head of a row, in place
//
// Twin:      crates/setun-ops/src/head_norm.rs
// Grid:      one workgroup a head (x) and a row (y)

const LANES: u32 = 64u;

struct Shape {
    width: u32,     // of a row
    column: u32,    // first of the first head
    head_dim: u32,
    eps: f32,
    wanted: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> gain: array<f32>;     // [head_dim]
@group(0) @binding(3) var<storage, read_write> x: array<f32>;  // [rows, width]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    if row >= rows_of(shape.wanted) {
        return;
    }
    let first = row * shape.width + shape.column + group.x * shape.head_dim;
    var squares = 0.0;
    for (var i = lane; i < shape.head_dim; i += LANES) {
        squares += x[first + i] * x[first + i];
    }
    let inverse = 1.0 / sqrt(sum_over_lanes(lane, squares) / f32(shape.head_dim) + shape.eps);
    for (var i = lane; i < shape.head_dim; i += LANES) {
        x[first + i] = x[first + i] * inverse * gain[i];
    }
}

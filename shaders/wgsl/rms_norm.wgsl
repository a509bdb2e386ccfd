// rms_norm: y[row, i] = (x[row, i] × (1 / sqrt(Σ x² / width + eps))) × gain[i]
//
// Twin:      crates/setun-ops/src/rms_norm.rs
// Order:     four neighbours at a time go to lane (i / 4) mod LANES
// Grid:      one workgroup a row of y

const LANES: u32 = 64u;

struct Shape {
    width: u32,
    eps: f32,
    wanted: u32,    // y holds the requested rows
    gather: u32,    // and x holds all
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;     // [rows, width]
@group(0) @binding(3) var<storage, read> gain: array<vec4<f32>>;  // [width]
@group(0) @binding(4) var<storage, read_write> y: array<f32>;  // [rows, width]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    if row >= rows_of(shape.wanted) {
        return;
    }
    var source = row;
    if shape.gather != 0u {
        source = wanted_row(row);
    }
    let inverse = inverse_rms(source, shape.width, shape.eps, lane);
    for (var four = lane; four * 4u < shape.width; four += LANES) {
        let values = normed_four(source, shape.width, four, inverse);
        for (var i = 0u; i < 4u && four * 4u + i < shape.width; i += 1u) {
            y[row * shape.width + four * 4u + i] = values[i];
        }
    }
}

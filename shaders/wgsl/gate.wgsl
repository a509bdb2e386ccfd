// gate: out = activation(g) × u, of the outputs of two products
//
// Twin:      crates/setun-ops/src/gate.rs
// Grid:      one lane an element: LANES of a row a workgroup (x), a row (y)

const LANES: u32 = 256u;

struct Shape {
    width: u32,
    wanted: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> g: array<f32>;          // [rows, width]
@group(0) @binding(3) var<storage, read> u: array<f32>;          // [rows, width]
@group(0) @binding(4) var<storage, read_write> out: array<f32>;  // [rows, width]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let column = group.x * LANES + lane;
    if group.y >= rows_of(shape.wanted) || column >= shape.width {
        return;
    }
    let at = group.y * shape.width + column;
    out[at] = gated(g[at], u[at]);
}

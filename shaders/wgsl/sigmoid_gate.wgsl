// sigmoid_gate: x = x × sigmoid(gate), in place
//
// Twin:      crates/setun-ops/src/sigmoid_gate.rs
// Grid:      one workgroup for EACH columns (x) and a row (y)

const LANES: u32 = 128u;
const EACH: u32 = 512u;

struct Shape {
    width: u32,
    gate_width: u32,
    column: u32,    // first of the gates
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> gate: array<f32>;     // [rows, gate_width]
@group(0) @binding(3) var<storage, read_write> x: array<f32>;  // [rows, width]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    if row >= batch_rows() {
        return;
    }
    let first = group.x * EACH;
    for (var i = first + lane; i < min(first + EACH, shape.width); i += LANES) {
        let g = gate[row * shape.gate_width + shape.column + i];
        x[row * shape.width + i] *= sigmoid(g);
    }
}

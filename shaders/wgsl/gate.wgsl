// gate: out = activation(gate(x)) × up(x)
//
// Twin:      crates/setun-ops/src/gate.rs
// Grid:      one workgroup for OUTPUTS outputs (x) and COLUMNS rows (y); LANES_EACH lanes an output

@group(0) @binding(4) var<storage, read> w: array<vec4<u32>>;         // gate: codes [outputs, blocks], then scales
@group(0) @binding(5) var<storage, read> up: array<vec4<u32>>;        // likewise
@group(0) @binding(6) var<storage, read> bias: array<f32>;            // of the gate, [outputs]
@group(0) @binding(7) var<storage, read> up_bias: array<f32>;         // [outputs]
@group(0) @binding(8) var<storage, read_write> out: array<f32>;       // [rows, outputs]

@compute @workgroup_size(LANES_EACH, OUTPUTS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let output = group.x * OUTPUTS + local.y;
    let first_row = group.y * COLUMNS;
    let rows = rows_of(shape.wanted);
    if first_row >= rows {
        return;
    }
    make_input(first_row, index);
    // Lanes beyond the matrices work on their last row and store nothing.
    let within = min(output, shape.outputs - 1u);
    let g = output_of(0u, within, first_row, local.x, index);
    let u = output_of(1u, within, first_row, local.x, index);
    let row = first_row + local.x;
    if local.x < COLUMNS && row < rows && output < shape.outputs {
        out[row * shape.width + output] = gated(g, u);
    }
}

fn w_quad(side: u32, at: u32) -> vec4<u32> {
    if side == 0u {
        return w[at];
    }
    return up[at];
}

fn bias_at(side: u32, output: u32) -> f32 {
    if side == 0u {
        return bias[output];
    }
    return up_bias[output];
}

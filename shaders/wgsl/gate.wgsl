// gate: out = activation(gate(x)) × up(x)
//
// Twin:      crates/setun-ops/src/gate.rs
// Grid:      one workgroup for OUTPUTS outputs (x) and COLUMNS rows (y)

@group(0) @binding(4) var<storage, read> w: array<vec4<u32>>;         // gate: codes [outputs, blocks], then scales
@group(0) @binding(5) var<storage, read> up: array<vec4<u32>>;        // likewise
@group(0) @binding(6) var<storage, read> bias: array<f32>;            // of the gate, [outputs]
@group(0) @binding(7) var<storage, read> up_bias: array<f32>;         // [outputs]
@group(0) @binding(8) var<storage, read_write> out: array<f32>;       // [rows, outputs]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first_output = group.x * OUTPUTS;
    let first_row = group.y * COLUMNS;
    let rows = rows_of(shape.wanted);
    if first_row >= rows {
        return;
    }
    make_input(first_row, lane);
    let g = products(0u, first_output, first_row, lane);
    let u = products(1u, first_output, first_row, lane);
    for (var k = 0u; k < VALUES; k += 1u) {
        let output = first_output + output_of(lane, k);
        let row = first_row + row_of(lane, k);
        if output < shape.outputs && row_of(lane, k) < COLUMNS && row < rows {
            out[row * shape.width + output] = gated(g[k], u[k]);
        }
    }
}

fn addend_at(row: u32, output: u32) -> f32 { return 0.0; }

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

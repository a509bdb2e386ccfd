// ternary_matmul: y[row, output] = dot × (x_scale[row] × w_scale[output]), dot = Σ (code − 1) × x
//
// Twin:      crates/setun-ops/src/ternary_matmul.rs
// Grid:      one workgroup for OUTPUTS outputs (x) and COLUMNS rows (y); LANES_EACH lanes an output

@group(0) @binding(4) var<storage, read> w: array<vec4<u32>>;         // codes [outputs, blocks], then scales
@group(0) @binding(5) var<storage, read> bias: array<f32>;            // [outputs]
@group(0) @binding(6) var<storage, read> residual: array<f32>;        // [rows, outputs]
@group(0) @binding(7) var<storage, read_write> y: array<f32>;         // [rows, width]

const RESIDUAL_APART: u32 = 1u;
const RESIDUAL_IN_PLACE: u32 = 2u;

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
    // Lanes beyond the matrix work on its last row and store nothing.
    let product = output_of(0u, min(output, shape.outputs - 1u), first_row, local.x, index);
    let row = first_row + local.x;
    if local.x >= COLUMNS || row >= rows || output >= shape.outputs {
        return;
    }
    let at = row * shape.width + shape.first + output;
    if shape.residual == RESIDUAL_APART {
        y[at] = product + residual[row * shape.outputs + output];
    } else if shape.residual == RESIDUAL_IN_PLACE {
        y[at] += product;
    } else {
        y[at] = product;
    }
}

fn w_quad(side: u32, at: u32) -> vec4<u32> { return w[at]; }
fn bias_at(side: u32, output: u32) -> f32 { return bias[output]; }

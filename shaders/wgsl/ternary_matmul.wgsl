// ternary_matmul: y[row, output] = dot × (x_scale[row] × w_scale[output]), dot = Σ (code − 1) × x
//
// Twin:      crates/setun-ops/src/ternary_matmul.rs
// Grid:      one workgroup for OUTPUTS outputs (x) and COLUMNS rows (y)

@group(0) @binding(4) var<storage, read> w: array<vec4<u32>>;         // codes [outputs, blocks], then scales
@group(0) @binding(5) var<storage, read> bias: array<f32>;            // [outputs]
@group(0) @binding(6) var<storage, read> residual: array<f32>;        // [rows, outputs]
@group(0) @binding(7) var<storage, read_write> y: array<f32>;         // [rows, width]

const RESIDUAL_APART: u32 = 1u;
const RESIDUAL_IN_PLACE: u32 = 2u;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first_output = group.x * OUTPUTS;
    let first_row = group.y * COLUMNS;
    let rows = rows_of(shape.wanted);
    if first_row >= rows {
        return;
    }
    make_input(first_row, lane);
    let values = products(0u, first_output, first_row, lane);
    for (var k = 0u; k < VALUES; k += 1u) {
        let output = first_output + output_of(lane, k);
        let row = first_row + row_of(lane, k);
        if output < shape.outputs && row_of(lane, k) < COLUMNS && row < rows {
            y[place_of(row, output)] = values[k];
        }
    }
}

fn place_of(row: u32, output: u32) -> u32 { return row * shape.width + shape.first + output; }

fn addend_at(row: u32, output: u32) -> f32 {
    if output >= shape.outputs || row >= rows_of(shape.wanted) {
        return 0.0;
    }
    if shape.residual == RESIDUAL_APART {
        return residual[row * shape.outputs + output];
    }
    if shape.residual == RESIDUAL_IN_PLACE {
        return y[place_of(row, output)];
    }
    return 0.0;
}

fn w_quad(side: u32, at: u32) -> vec4<u32> { return w[at]; }
fn bias_at(side: u32, output: u32) -> f32 { return bias[output]; }

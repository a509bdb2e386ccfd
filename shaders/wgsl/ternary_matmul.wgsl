// ternary_matmul: y[row, output] = dot × (x_scale[row] × w_scale[output]), dot = Σ (code − 1) × x
//
// Twin:      crates/setun-ops/src/ternary_matmul.rs
// Exact:     the integer sum, in any order
// Layout:    crates/setun-ops/src/ternary.rs: a block is 128 codes in four planes of 32 columns
// Grid:      one workgroup for OUTPUTS outputs (x) and COLUMNS rows (y); LANES lanes an output

const OUTPUTS: u32 = 8u;
const LANES: u32 = 32u;
const BLOCK_WORDS: u32 = 8u;          // words of a packed block: 128 codes of two bits
const PLANE_WORDS: u32 = 8u;          // words of a plane's activations: 32 × int8
const PLANES: u32 = 4u;
const CODES: u32 = 0x03030303u;       // the lowest code of each of four bytes

struct Shape {
    outputs: u32,
    blocks: u32,        // packed blocks of a row of the matrix
    groups: u32,        // scales of a row of the matrix
    group_planes: u32,  // planes that share a scale
    capacity: u32,      // rows that x holds
    wanted: u32,
    bias: u32,
    residual: u32,
    width: u32,         // of y
    first: u32,         // column of y that the first output goes to
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;         // codes, then scales
@group(0) @binding(3) var<storage, read> x: array<vec4<u32>>;         // codes, scales, sums
@group(0) @binding(4) var<storage, read> bias: array<f32>;            // [outputs]
@group(0) @binding(5) var<storage, read> residual: array<f32>;        // [rows, outputs]
@group(0) @binding(6) var<storage, read_write> y: array<f32>;         // [rows, width]

const RESIDUAL_APART: u32 = 1u;
const RESIDUAL_IN_PLACE: u32 = 2u;

var<workgroup> partial: array<array<i32, COLUMNS>, 256>;  // OUTPUTS × LANES

@compute @workgroup_size(LANES, OUTPUTS)
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
    let row = first_row + local.x;
    // Lanes beyond the matrix work on its last row and store nothing.
    let product = output_of(min(output, shape.outputs - 1u), first_row, local.x, index);
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

fn w_scale(output: u32, group: u32) -> f32 {
    let codes = shape.outputs * shape.blocks * BLOCK_WORDS;
    let at = codes + output * shape.groups + group;
    return bitcast<f32>(w[at / 4u][at % 4u]);
}

fn x_word(at: u32) -> u32 {
    return x[at / 4u][at % 4u];
}

fn x_scale(row: u32) -> f32 {
    return bitcast<f32>(x_word(shape.capacity * shape.blocks * PLANES * PLANE_WORDS + row));
}

fn x_sum(row: u32) -> i32 {
    return bitcast<i32>(x_word(shape.capacity * (shape.blocks * PLANES * PLANE_WORDS + 1u) + row));
}

fn bias_of(output: u32) -> f32 {
    if shape.bias == NO_BIAS {
        return 0.0;
    }
    return bias[output];
}

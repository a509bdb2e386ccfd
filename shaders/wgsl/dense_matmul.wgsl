// dense_matmul: out[row, column + output] = Σ x[row] × weight[output]
//
// Twin:      crates/setun-ops/src/dense_matmul.rs
// Order:     four neighbours at a time go to lane (i / 4) mod LANES
// Grid:      one workgroup an output (x) and ROWS rows (y)

const LANES: u32 = 128u;
const ROWS: u32 = 4u;

struct Shape {
    width: u32,
    stride: u32,        // vectors of a row of the table
    outputs: u32,       // before this part of the table
    out_width: u32,
    column: u32,        // first column written
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;      // [rows, width]
@group(0) @binding(4) var<storage, read_write> out: array<f32>;    // [rows, out_width]

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let rows = batch_rows();
    let first_row = group.y * ROWS;
    if first_row >= rows {
        return;
    }
    var sums = vec4<f32>();
    let fours = (shape.width + 3u) / 4u;
    for (var four = lane; four < fours; four += LANES) {
        let w = table_four(table[group.x * shape.stride + four / FOURS], four % FOURS);
        for (var row = 0u; row < ROWS; row += 1u) {
            let values = x_four(min(first_row + row, rows - 1u), four);
            var sum = fma(values.x, w.x, sums[row]);
            sum = fma(values.y, w.y, sum);
            sum = fma(values.z, w.z, sum);
            sums[row] = fma(values.w, w.w, sum);
        }
    }
    sums = sum_four_over_lanes(lane, sums);
    if lane < ROWS && first_row + lane < rows {
        let at = (first_row + lane) * shape.out_width + shape.column + shape.outputs + group.x;
        out[at] = table_scale(group.x, shape.stride) * sums[lane];
    }
}

// Four neighbours, zeros beyond the row.
fn x_four(row: u32, four: u32) -> vec4<f32> {
    let at = row * shape.width + four * 4u;
    if shape.width % 4u == 0u {
        return x[at / 4u];
    }
    var values = vec4<f32>();
    for (var i = 0u; i < 4u && four * 4u + i < shape.width; i += 1u) {
        values[i] = x[(at + i) / 4u][(at + i) % 4u];
    }
    return values;
}

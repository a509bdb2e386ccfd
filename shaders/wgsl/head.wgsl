// head: logits[row, token] = scale × Σ x × table[token]
//
// Twin:      crates/setun-ops/src/head.rs
// Order:     four neighbours at a time go to lane (i / 4) mod LANES, then lanes fold by halves
// Grid:      one workgroup for TOKENS tokens (x) and COLUMNS rows (y); LANES lanes a token

const TOKENS: u32 = 8u;
const LANES: u32 = 32u;

struct Shape {
    width: u32,
    stride: u32,    // words of a row of the table
    first: u32,     // first token of this part of the table
    tokens: u32,    // tokens of this part
    vocab: u32,     // tokens of all
    wanted: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<f32>;             // [rows, width]
@group(0) @binding(4) var<storage, read_write> logits: array<f32>;  // [rows, vocab]

var<workgroup> partial: array<array<f32, COLUMNS>, 256>;  // TOKENS × LANES

@compute @workgroup_size(LANES, TOKENS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let rows = rows_of(shape.wanted);
    let first_row = group.y * COLUMNS;
    if first_row >= rows {
        return;
    }
    let own = group.x * TOKENS + local.y;
    let token = min(own, shape.tokens - 1u);
    var sums: array<f32, COLUMNS>;
    for (var four = local.x; four * 4u < shape.width; four += LANES) {
        let values = table_four(token, shape.stride, four);
        for (var c = 0u; c < COLUMNS; c += 1u) {
            sums[c] += dot_four(values, min(first_row + c, rows - 1u), four);
        }
    }
    partial[index] = sums;
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        if local.x < width {
            for (var c = 0u; c < COLUMNS; c += 1u) {
                partial[index][c] += partial[index + width][c];
            }
        }
        workgroupBarrier();
    }
    let row = first_row + local.x;
    if local.x < COLUMNS && row < rows && own < shape.tokens {
        let sum = partial[index - local.x][local.x];
        logits[row * shape.vocab + shape.first + own] = table_scale(token, shape.stride) * sum;
    }
}

fn dot_four(values: vec4<f32>, row: u32, four: u32) -> f32 {
    let at = row * shape.width + four * 4u;
    var sum = 0.0;
    for (var i = 0u; i < 4u; i += 1u) {
        if four * 4u + i < shape.width {
            sum += x[at + i] * values[i];
        }
    }
    return sum;
}

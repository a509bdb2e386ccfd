// head: logits[row, token] = scale × Σ x × table[token]
//
// Twin:      crates/setun-ops/src/head.rs
// Order:     vector i of a token goes to lane i mod LANES_EACH, element by element, then lanes ascend
// Grid:      one workgroup for TOKENS tokens (x) and COLUMNS rows (y); LANES_EACH lanes for EACH tokens

const LANES: u32 = 64u;
const LANES_EACH: u32 = 8u;
const EACH: u32 = 4u;
const TOKENS: u32 = 32u;

struct Shape {
    width: u32,
    stride: u32,    // vectors of a row of the table
    first: u32,     // first token of this part of the table
    tokens: u32,    // tokens of this part
    vocab: u32,     // tokens of all
    wanted: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;       // [rows, width]
@group(0) @binding(4) var<storage, read_write> logits: array<f32>;  // [rows, vocab]

var<workgroup> partial: array<vec4<f32>, LANES * COLUMNS>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let rows = rows_of(shape.wanted);
    let first_row = group.y * COLUMNS;
    if first_row >= rows {
        return;
    }
    let first = group.x * TOKENS;
    let own = vec4<u32>(first + lane / LANES_EACH * EACH) + vec4<u32>(0u, 1u, 2u, 3u);
    let at = min(own, vec4<u32>(shape.tokens - 1u)) * shape.stride;
    var sums: array<vec4<f32>, COLUMNS>;
    let fours = (shape.width + 3u) / 4u;
    for (var quad = lane % LANES_EACH; quad * FOURS < fours; quad += LANES_EACH) {
        let a = table[at.x + quad];
        let b = table[at.y + quad];
        let c = table[at.z + quad];
        let d = table[at.w + quad];
        for (var k = 0u; k < FOURS && quad * FOURS + k < fours; k += 1u) {
            let tokens = mat4x4<f32>(table_four(a, k), table_four(b, k), table_four(c, k), table_four(d, k));
            let elements = transpose(tokens);
            for (var column = 0u; column < COLUMNS; column += 1u) {
                let values = x_four(min(first_row + column, rows - 1u), quad * FOURS + k);
                var sum = sums[column];
                sum = fma(vec4<f32>(values.x), elements[0], sum);
                sum = fma(vec4<f32>(values.y), elements[1], sum);
                sum = fma(vec4<f32>(values.z), elements[2], sum);
                sums[column] = fma(vec4<f32>(values.w), elements[3], sum);
            }
        }
    }
    for (var column = 0u; column < COLUMNS; column += 1u) {
        partial[column * LANES + lane] = sums[column];
    }
    workgroupBarrier();
    for (var value = lane; value < TOKENS * COLUMNS; value += LANES) {
        let token = value % TOKENS;
        let column = value / TOKENS;
        if first_row + column < rows && first + token < shape.tokens {
            var sum = 0.0;
            for (var i = 0u; i < LANES_EACH; i += 1u) {
                sum += partial[column * LANES + token / EACH * LANES_EACH + i][token % EACH];
            }
            logits[(first_row + column) * shape.vocab + shape.first + first + token] = table_scale(first + token, shape.stride) * sum;
        }
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

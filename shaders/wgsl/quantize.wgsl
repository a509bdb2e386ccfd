// quantize: int8 codes and one scale for each row of x, or of its norm
//
// Twin:      crates/setun-ops/src/quantize.rs
// Layout:    of codes: [capacity, words] of four codes, then [capacity] scales, then [capacity] sums of codes
// Grid:      one workgroup a row

const LANES: u32 = 64u;

struct Shape {
    x_width: u32,
    words: u32,      // of a row of codes, padded to whole blocks
    capacity: u32,   // rows that the buffers hold
    wanted: u32,
    has_norm: u32,
    eps: f32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> x: array<f32>;            // [rows, x_width]
@group(0) @binding(3) var<storage, read> gain: array<f32>;         // [x_width]
@group(0) @binding(4) var<storage, read_write> codes: array<u32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    if row >= rows_of(shape.wanted) {
        return;
    }
    let scale_and_sum = quantize_row(row, lane);
    if lane == 0u {
        let scales = shape.capacity * shape.words;
        codes[scales + row] = scale_and_sum.x;
        codes[scales + shape.capacity + row] = scale_and_sum.y;
    }
}

fn put_codes(row: u32, word: u32, packed: u32) {
    codes[row * shape.words + word] = packed;
}

// quantize: int8 codes of each row of x, or of its norm, and one scale or one for each group of columns
//
// Twin:      crates/setun-ops/src/quantize.rs
// Layout:    of codes: [capacity, words] of four codes, then [capacity, groups] scales; then, with one scale a row,
//            [capacity] sums of codes
// Grid:      one workgroup a row

const LANES: u32 = 64u;

struct Shape {
    x_width: u32,
    words: u32,         // of a row of codes, padded to whole blocks
    capacity: u32,      // rows that the buffers hold
    wanted: u32,
    has_norm: u32,
    eps: f32,
    groups: u32,        // scales of a row
    group_words: u32,   // of the codes of a group
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;      // [rows, x_width]
@group(0) @binding(3) var<storage, read> gain: array<vec4<f32>>;   // [x_width]
@group(0) @binding(4) var<storage, read_write> codes: array<u32>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    if row >= rows_of(shape.wanted) {
        return;
    }
    quantize(row, lane);
}

fn put_codes(row: u32, word: u32, packed: u32) {
    codes[row * shape.words + word] = packed;
}

fn put_scale(row: u32, group: u32, bits: u32) {
    codes[shape.capacity * shape.words + row * shape.groups + group] = bits;
}

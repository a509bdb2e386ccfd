// Activations of one row that each workgroup quantizes for itself, which saves a launch. Both sides share them.

@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;     // [1, x_width]
@group(0) @binding(3) var<storage, read> gain: array<vec4<f32>>;  // [x_width]

var<workgroup> row_codes: array<u32, WORDS>;
var<workgroup> row_scale_and_sum: vec2<u32>;

fn make_input(first_row: u32, lane: u32) {
    let scale_and_sum = quantize_row(first_row, lane);
    if lane == 0u {
        row_scale_and_sum = scale_and_sum;
    }
    workgroupBarrier();
}

fn put_codes(row: u32, word: u32, packed: u32) {
    row_codes[word] = packed;
}

fn x_quad(side: u32, row: u32, at: u32) -> vec4<u32> {
    let word = 4u * at;
    return vec4<u32>(row_codes[word], row_codes[word + 1u], row_codes[word + 2u], row_codes[word + 3u]);
}

fn x_scale(side: u32, row: u32, group: u32) -> f32 { return bitcast<f32>(row_scale_and_sum.x); }
fn x_sum(side: u32, row: u32) -> i32 { return bitcast<i32>(row_scale_and_sum.y); }

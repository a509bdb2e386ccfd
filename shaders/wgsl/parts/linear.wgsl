// What products with packed matrices share. A kernel has one matrix, or two `side`s of equal shape.
//
// Exact:     the integer sum, in any order
// Floats:    a product that is added to something goes through `fma`: WGSL lets a compiler fuse the two or not, in each
//            variant of a kernel as it likes, and a row's bits must not depend on how many it comes with
// Layout:    crates/setun-ops/src/ternary.rs: a block is 128 codes in four planes of 32 columns

const LANES: u32 = 64u;
const OUTPUTS: u32 = 32u;             // outputs of a workgroup
const BLOCK_WORDS: u32 = 8u;          // words of a packed block: 128 codes of two bits
const BLOCK_QUADS: u32 = 2u;          // the same in vectors of four words
const PLANES: u32 = 4u;
const PLANE_QUADS: u32 = 2u;          // vectors of a plane's activations: 32 × int8
const CODES: u32 = 0x03030303u;       // the lowest code of each of four bytes
const ONES: u32 = 0x01010101u;        // code − 1 is the weight

struct Shape {
    outputs: u32,
    blocks: u32,                // packed blocks of a row of a matrix
    groups: vec2<u32>,          // scales of a row of each matrix
    x_groups: vec2<u32>,        // and of a row of what it is multiplied with
    grouped: vec2<u32>,         // whether either has several
    runs: vec2<u32>,            // runs of columns of a row that have one scale of each
    run_planes: vec2<u32>,      // planes of a run
    w_runs: vec2<u32>,          // runs that share a scale of weights
    x_runs: vec2<u32>,          // and one of activations
    bias: vec2<u32>,
    capacity: u32,              // rows that x holds
    wanted: u32,
    x_width: u32,
    words: u32,                 // of a row of codes of x
    has_norm: u32,
    eps: f32,
    width: u32,                 // of a row of the result
    first: u32,                 // its column that the first output goes to
    residual: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;

const NO_BIAS: u32 = 0u;
const BIAS_AFTER_SCALE: u32 = 1u;
const BIAS_BEFORE_SCALE: u32 = 2u;

// Four rows of a matrix from vectors `at` on, beyond the last one that one again.
fn w_rows(side: u32, first_output: u32) -> vec4<u32> {
    let outputs = vec4<u32>(first_output) + vec4<u32>(0u, 1u, 2u, 3u);
    return min(outputs, vec4<u32>(shape.outputs - 1u)) * (shape.blocks * BLOCK_QUADS);
}

fn w_scale(side: u32, output: u32, group: u32) -> f32 {
    let codes = shape.outputs * shape.blocks * BLOCK_WORDS;
    let at = codes + output * shape.groups[side] + group;
    return bitcast<f32>(w_quad(side, at / 4u)[at % 4u]);
}

fn codes_of(packed: vec4<u32>, plane: u32) -> vec4<u32> {
    return (packed >> vec4<u32>(2u * plane)) & vec4<u32>(CODES);
}

fn dot_quads(codes: vec4<u32>, acts: vec4<u32>) -> i32 {
    return dot4(codes.x, acts.x) + dot4(codes.y, acts.y) + dot4(codes.z, acts.z) + dot4(codes.w, acts.w);
}

// An output of a matrix with one scale a row, of its sum over weights, plus `addend`.
fn scaled(side: u32, output: u32, row: u32, sum: i32, addend: f32) -> f32 {
    let dot = f32(sum);
    let w = w_scale(side, output, 0u);
    let t = x_scale(side, row, 0u);
    if shape.bias[side] == BIAS_BEFORE_SCALE {
        return fma(fma(dot, t, bias_at(side, output)), w, addend);
    }
    if shape.bias[side] == BIAS_AFTER_SCALE {
        return fma(dot, t * w, bias_at(side, output)) + addend;
    }
    return fma(dot, t * w, addend);
}

// What products with packed matrices share. A kernel has one matrix, or two `side`s of equal shape.
//
// Exact:     the integer sum, in any order
// Layout:    crates/setun-ops/src/ternary.rs: a block is 128 codes in four planes of 32 columns

const OUTPUTS: u32 = 8u;              // outputs of a workgroup
const LANES_EACH: u32 = 32u;          // lanes of an output
const LANES: u32 = 256u;              // OUTPUTS × LANES_EACH
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
    group_planes: vec2<u32>,    // planes that share a scale
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

var<workgroup> partial: array<array<i32, COLUMNS>, LANES>;

fn w_scale(side: u32, output: u32, group: u32) -> f32 {
    let codes = shape.outputs * shape.blocks * BLOCK_WORDS;
    let at = codes + output * shape.groups[side] + group;
    return bitcast<f32>(w_quad(side, at / 4u)[at % 4u]);
}

fn dot_quads(codes: vec4<u32>, acts: vec4<u32>) -> i32 {
    return dot4(codes.x, acts.x) + dot4(codes.y, acts.y) + dot4(codes.z, acts.z) + dot4(codes.w, acts.w);
}

fn bias_of(side: u32, output: u32) -> f32 {
    if shape.bias[side] == NO_BIAS {
        return 0.0;
    }
    return bias_at(side, output);
}

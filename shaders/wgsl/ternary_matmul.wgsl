// ternary_matmul: y[row, output] = dot × (x_scale[row] × w_scale[output]), dot = Σ (code − 1) × x
//
// Twin:      crates/setun-ops/src/ternary_matmul.rs
// Exact:     the integer sum, in any order
// Layout:    crates/setun-ops/src/ternary.rs: a block is 128 codes in four planes of 32 columns
// Grid:      one workgroup an output (x) and a row (y); its lanes stride over the row's words

override WORKGROUP: u32 = 64u;

const BLOCK_WORDS: u32 = 8u;          // words of a packed block: 128 codes of two bits
const PLANE_WORDS: u32 = 8u;          // words of a plane's activations: 32 × int8
const PLANES: u32 = 4u;
const CODES: u32 = 0x03030303u;       // the lowest code of each of four bytes

struct Shape {
    outputs: u32,   // rows of the matrix
    blocks: u32,    // packed blocks of one of its rows
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> w: array<u32>;        // [outputs, blocks, BLOCK_WORDS]
@group(0) @binding(2) var<storage, read> w_scale: array<f32>;  // [outputs]
@group(0) @binding(3) var<storage, read> x: array<u32>;        // [rows, blocks, PLANES, PLANE_WORDS], 4 × int8 a word
@group(0) @binding(4) var<storage, read> x_scale: array<f32>;  // [rows]
@group(0) @binding(5) var<storage, read> x_sum: array<i32>;    // [rows], Σ x: turns codes into weights
@group(0) @binding(6) var<storage, read_write> y: array<f32>;  // [rows, outputs]

var<workgroup> partial: array<i32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let output = group.x;
    let row = group.y;
    let words = shape.blocks * BLOCK_WORDS;
    var sum = 0;
    for (var word = lane; word < words; word += WORKGROUP) {
        let packed = w[output * words + word];
        let block = word / BLOCK_WORDS;
        let activations = ((row * shape.blocks + block) * PLANES) * PLANE_WORDS + word % BLOCK_WORDS;
        for (var plane = 0u; plane < PLANES; plane += 1u) {
            sum += dot4(packed >> (2u * plane) & CODES, x[activations + plane * PLANE_WORDS]);
        }
    }
    partial[lane] = sum;
    workgroupBarrier();
    for (var width = WORKGROUP / 2u; width > 0u; width /= 2u) {
        if lane < width {
            partial[lane] += partial[lane + width];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        let dot = partial[0] - x_sum[row];
        y[row * shape.outputs + output] = f32(dot) * (x_scale[row] * w_scale[output]);
    }
}

// Four codes 0..=2 times four int8, by shifts: it runs where the language feature
// `packed_4x8_integer_dot_product` is missing.
fn dot4(codes: u32, activations: u32) -> i32 {
    let code = vec4<i32>(vec4<u32>(codes, codes >> 8u, codes >> 16u, codes >> 24u) & vec4<u32>(0xffu));
    let bytes = vec4<u32>(activations << 24u, activations << 16u, activations << 8u, activations);
    let signed = bitcast<vec4<i32>>(bytes) >> vec4<u32>(24u);
    let products = code * signed;
    return products.x + products.y + products.z + products.w;
}

// hadamard: signs and a Walsh–Hadamard matrix over each block of columns, in place
//
// Twin:      crates/setun-ops/src/hadamard.rs
// Order:     sums and differences of pairs 1, 2, 4, … columns apart, as the definition has them
// Grid:      one workgroup a block (x) and a row (y)

const LANES: u32 = 128u;
const FOURS: u32 = BLOCK / 4u;

struct Shape {
    fours: u32,     // vectors of a row
    scale: f32,
    wanted: u32,
    has_signs: u32,
    inverse: u32,   // signs follow
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> signs: array<vec4<f32>>;    // [width]
@group(0) @binding(3) var<storage, read_write> x: array<vec4<f32>>;  // [rows, width]

var<workgroup> block: array<vec4<f32>, FOURS>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    if row >= rows_of(shape.wanted) {
        return;
    }
    let column = group.x * FOURS;
    let first = row * shape.fours + column;
    for (var i = lane; i < FOURS; i += LANES) {
        var four = x[first + i];
        if shape.has_signs != 0u && shape.inverse == 0u {
            four *= signs[column + i];
        }
        let pairs = vec4<f32>(four.x + four.y, four.x - four.y, four.z + four.w, four.z - four.w);
        block[i] = vec4<f32>(pairs.xy + pairs.zw, pairs.xy - pairs.zw);
    }
    for (var distance = 1u; distance < FOURS; distance *= 2u) {
        workgroupBarrier();
        for (var pair = lane; pair < FOURS / 2u; pair += LANES) {
            let low = pair / distance * 2u * distance + pair % distance;
            let a = block[low];
            let b = block[low + distance];
            block[low] = a + b;
            block[low + distance] = a - b;
        }
    }
    workgroupBarrier();
    for (var i = lane; i < FOURS; i += LANES) {
        var four = block[i] * shape.scale;
        if shape.has_signs != 0u && shape.inverse != 0u {
            four *= signs[column + i];
        }
        x[first + i] = four;
    }
}

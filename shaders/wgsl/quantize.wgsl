// quantize: int8 codes and one scale for each row of x, or of its norm
//
// Twin:      crates/setun-ops/src/quantize.rs
// Layout:    of codes: [capacity, words] of four codes, then [capacity] scales, then [capacity] sums of codes
// Grid:      one workgroup a row

const LANES: u32 = 256u;

struct Shape {
    width: u32,
    words: u32,      // of a row of codes, padded to whole blocks
    capacity: u32,   // rows that the buffers hold
    wanted: u32,
    has_norm: u32,
    eps: f32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> gain: array<f32>;
@group(0) @binding(4) var<storage, read_write> codes: array<u32>;

const NOT_FINITE: u32 = 0x7f800000u;
const LEAST_ABSMAX: f32 = 1e-5;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x;
    if row >= rows_of(shape.wanted) {
        return;
    }
    var inverse = 1.0;
    if shape.has_norm != 0u {
        inverse = inverse_rms(row, shape.width, shape.eps, lane);
    }
    var most = 0u;
    for (var i = lane; i < shape.width; i += LANES) {
        most = max(most, bitcast<u32>(value(row, i, inverse)) & 0x7fffffffu);
    }
    most = greatest_over_lanes(lane, most);
    let is_finite = most < NOT_FINITE;
    let absmax = max(bitcast<f32>(most), LEAST_ABSMAX);
    let factor = 127.0 / absmax;

    var sum = 0;
    for (var word = lane; word < shape.words; word += LANES) {
        var packed = 0u;
        for (var k = 0u; k < 4u; k += 1u) {
            let i = word * 4u + k;
            if i < shape.width && is_finite {
                let code = i32(clamp(round(value(row, i, inverse) * factor), -127.0, 127.0));
                packed |= (bitcast<u32>(code) & 0xffu) << (8u * k);
                sum += code;
            }
        }
        codes[row * shape.words + word] = packed;
    }
    sum = total_over_lanes(lane, sum);
    if lane == 0u {
        let scales = shape.capacity * shape.words;
        codes[scales + row] = select(0x7fc00000u, bitcast<u32>(absmax / 127.0), is_finite);
        codes[scales + shape.capacity + row] = bitcast<u32>(sum);
    }
}

fn value(row: u32, i: u32, inverse: f32) -> f32 {
    let element = x[row * shape.width + i];
    if shape.has_norm == 0u {
        return element;
    }
    return element * inverse * gain[i];
}

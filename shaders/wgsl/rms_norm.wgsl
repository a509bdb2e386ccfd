// rms_norm: y[row, i] = (x[row, i] × (1 / sqrt(fold16(x²) / width + eps))) × gain[i]
//
// Twin:      crates/setun-ops/src/rms_norm.rs
// Order:     crates/setun-ops/src/fold.rs: element i goes to lane i mod 16, then lanes fold 8, 4, 2, 1
// Grid:      one workgroup of LANES a row

const LANES: u32 = 16u;

struct Shape {
    width: u32,
    eps: f32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> x: array<f32>;        // [rows, width]
@group(0) @binding(2) var<storage, read> gain: array<f32>;     // [width]
@group(0) @binding(3) var<storage, read_write> y: array<f32>;  // [rows, width]

var<workgroup> lanes: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * shape.width;
    var sum = 0.0;
    for (var i = lane; i < shape.width; i += LANES) {
        let value = x[first + i];
        sum += value * value;
    }
    lanes[lane] = sum;
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        if lane < width {
            lanes[lane] += lanes[lane + width];
        }
        workgroupBarrier();
    }
    let inverse = 1.0 / sqrt(lanes[0] / f32(shape.width) + shape.eps);
    for (var i = lane; i < shape.width; i += LANES) {
        y[first + i] = x[first + i] * inverse * gain[i];
    }
}

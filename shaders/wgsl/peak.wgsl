// peak: sums[lane] = Σ of the lane's chains, each of which grows by a product with its own four bytes in each round
//
// Twin:      crates/setun-gpu/src/peak.rs
// Grid:      any

const LANES: u32 = 256u;

struct Shape {
    rounds: u32,
    codes: u32,         // four of 0..=2
    activations: u32,   // for kernels of tiles
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(2) var<storage, read_write> sums: array<u32>;    // [workgroups × LANES]

fn grown(four: vec4<i32>, codes: u32) -> vec4<i32> {
    return four + vec4<i32>(
        dot4(codes, u32(four.x)), dot4(codes, u32(four.y)), dot4(codes, u32(four.z)), dot4(codes, u32(four.w)));
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let codes = shape.codes;
    var low = vec4<i32>(i32(lane)) + vec4<i32>(0, 1, 2, 3);
    var high = low + vec4<i32>(4);
    for (var round = 0u; round < shape.rounds; round += 1u) {
        low = grown(low, codes);
        high = grown(high, codes);
    }
    let all = low + high;
    sums[group.x * LANES + lane] = u32(all.x + all.y + all.z + all.w);
}

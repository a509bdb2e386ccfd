// As lanes.wgsl, four values at a time.

const FOLDED: u32 = 8u;

var<workgroup> lane_fours: array<vec4<f32>, LANES>;
var<workgroup> folded_fours: array<vec4<f32>, FOLDED>;

fn sum_four_over_lanes(lane: u32, value: vec4<f32>) -> vec4<f32> {
    lane_fours[lane] = value;
    workgroupBarrier();
    if lane < FOLDED {
        var sum = vec4<f32>();
        for (var i = lane; i < LANES; i += FOLDED) {
            sum += lane_fours[i];
        }
        folded_fours[lane] = sum;
    }
    workgroupBarrier();
    var sum = vec4<f32>();
    for (var i = 0u; i < FOLDED; i += 1u) {
        sum += folded_fours[i];
    }
    return sum;
}

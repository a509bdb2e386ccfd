// A sum that all lanes of a workgroup agree on: lane i < FOLDED folds lanes i, i + FOLDED, …, then all fold what these
// have. The order depends on nothing but LANES.

const FOLDED: u32 = 8u;

var<workgroup> lane_floats: array<f32, LANES>;
var<workgroup> folded_floats: array<f32, FOLDED>;

fn sum_over_lanes(lane: u32, value: f32) -> f32 {
    lane_floats[lane] = value;
    workgroupBarrier();
    if lane < FOLDED {
        var sum = 0.0;
        for (var i = lane; i < LANES; i += FOLDED) {
            sum += lane_floats[i];
        }
        folded_floats[lane] = sum;
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < FOLDED; i += 1u) {
        sum += folded_floats[i];
    }
    return sum;
}

// What all lanes of a workgroup agree on: lane i < FOLDED folds lanes i, i + FOLDED, …, then all fold what these have.
// The order of a sum depends on nothing but LANES.

const FOLDED: u32 = 8u;

var<workgroup> lane_floats: array<f32, LANES>;
var<workgroup> lane_words: array<u32, LANES>;
var<workgroup> folded_floats: array<f32, FOLDED>;
var<workgroup> folded_words: array<u32, FOLDED>;

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

fn total_over_lanes(lane: u32, value: i32) -> i32 {
    lane_words[lane] = bitcast<u32>(value);
    workgroupBarrier();
    if lane < FOLDED {
        var total = 0u;
        for (var i = lane; i < LANES; i += FOLDED) {
            total += lane_words[i];
        }
        folded_words[lane] = total;
    }
    workgroupBarrier();
    var total = 0u;
    for (var i = 0u; i < FOLDED; i += 1u) {
        total += folded_words[i];
    }
    return bitcast<i32>(total);
}

fn greatest_over_lanes(lane: u32, value: u32) -> u32 {
    lane_words[lane] = value;
    workgroupBarrier();
    if lane < FOLDED {
        var greatest = 0u;
        for (var i = lane; i < LANES; i += FOLDED) {
            greatest = max(greatest, lane_words[i]);
        }
        folded_words[lane] = greatest;
    }
    workgroupBarrier();
    var greatest = 0u;
    for (var i = 0u; i < FOLDED; i += 1u) {
        greatest = max(greatest, folded_words[i]);
    }
    return greatest;
}

// What all lanes of a workgroup agree on. The order of a sum depends on nothing but LANES.

var<workgroup> lane_floats: array<f32, LANES>;
var<workgroup> lane_words: array<u32, LANES>;

fn sum_over_lanes(lane: u32, value: f32) -> f32 {
    lane_floats[lane] = value;
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        if lane < width {
            lane_floats[lane] += lane_floats[lane + width];
        }
        workgroupBarrier();
    }
    let sum = lane_floats[0];
    workgroupBarrier();
    return sum;
}

fn total_over_lanes(lane: u32, value: i32) -> i32 {
    lane_words[lane] = bitcast<u32>(value);
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        if lane < width {
            lane_words[lane] += lane_words[lane + width];
        }
        workgroupBarrier();
    }
    let total = bitcast<i32>(lane_words[0]);
    workgroupBarrier();
    return total;
}

fn greatest_over_lanes(lane: u32, value: u32) -> u32 {
    lane_words[lane] = value;
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        if lane < width {
            lane_words[lane] = max(lane_words[lane], lane_words[lane + width]);
        }
        workgroupBarrier();
    }
    let greatest = lane_words[0];
    workgroupBarrier();
    return greatest;
}

// The greatest of all lanes, of four values at a time, through the workgroup's memory.

fn greatest_four_over_lanes(lane: u32, value: vec4<f32>) -> vec4<f32> {
    lane_fours[lane] = value;
    workgroupBarrier();
    if lane < FOLDED {
        var greatest = lane_fours[lane];
        for (var i = lane + FOLDED; i < LANES; i += FOLDED) {
            greatest = max(greatest, lane_fours[i]);
        }
        folded_fours[lane] = greatest;
    }
    workgroupBarrier();
    var greatest = folded_fours[0];
    for (var i = 1u; i < FOLDED; i += 1u) {
        greatest = max(greatest, folded_fours[i]);
    }
    return greatest;
}

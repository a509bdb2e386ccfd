// The greatest of all lanes, of four values at a time, by subgroups. A barrier lies between two uses.

var<workgroup> greatest_fours: array<vec4<f32>, LANES / NEIGHBOURS>;

fn greatest_four_over_lanes(lane: u32, value: vec4<f32>) -> vec4<f32> {
    let own = subgroupMax(value);
    if lane % NEIGHBOURS == 0u {
        greatest_fours[lane / NEIGHBOURS] = own;
    }
    workgroupBarrier();
    var greatest = greatest_fours[0];
    for (var i = 1u; i < LANES / NEIGHBOURS; i += 1u) {
        greatest = max(greatest, greatest_fours[i]);
    }
    return greatest;
}

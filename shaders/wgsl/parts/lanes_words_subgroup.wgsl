// Totals and greatest words that all lanes of a workgroup agree on, by subgroups. Each function is for one use in a
// kernel, or for uses that a barrier parts: what it has folded stays until all have read it.

const FOLDED_WORDS: u32 = LANES / NEIGHBOURS;

var<workgroup> folded_totals: array<i32, FOLDED_WORDS>;
var<workgroup> folded_greatest: array<u32, FOLDED_WORDS>;

fn total_over_lanes(lane: u32, value: i32) -> i32 {
    let own = total_of_neighbours(value);
    if lane % NEIGHBOURS == 0u {
        folded_totals[lane / NEIGHBOURS] = own;
    }
    workgroupBarrier();
    var total = 0;
    for (var i = 0u; i < FOLDED_WORDS; i += 1u) {
        total += folded_totals[i];
    }
    return total;
}

fn greatest_over_lanes(lane: u32, value: u32) -> u32 {
    let own = subgroupMax(value);
    if lane % NEIGHBOURS == 0u {
        folded_greatest[lane / NEIGHBOURS] = own;
    }
    workgroupBarrier();
    var greatest = 0u;
    for (var i = 0u; i < FOLDED_WORDS; i += 1u) {
        greatest = max(greatest, folded_greatest[i]);
    }
    return greatest;
}

// Totals and greatest words that all lanes of a workgroup agree on, through its memory: as lanes.wgsl, in any order.

const FOLDED_WORDS: u32 = 8u;

var<workgroup> lane_words: array<u32, LANES>;
var<workgroup> folded_words: array<u32, FOLDED_WORDS>;

fn total_over_lanes(lane: u32, value: i32) -> i32 {
    lane_words[lane] = bitcast<u32>(value);
    workgroupBarrier();
    if lane < FOLDED_WORDS {
        var total = 0u;
        for (var i = lane; i < LANES; i += FOLDED_WORDS) {
            total += lane_words[i];
        }
        folded_words[lane] = total;
    }
    workgroupBarrier();
    var total = 0u;
    for (var i = 0u; i < FOLDED_WORDS; i += 1u) {
        total += folded_words[i];
    }
    return bitcast<i32>(total);
}

fn greatest_over_lanes(lane: u32, value: u32) -> u32 {
    lane_words[lane] = value;
    workgroupBarrier();
    if lane < FOLDED_WORDS {
        var greatest = 0u;
        for (var i = lane; i < LANES; i += FOLDED_WORDS) {
            greatest = max(greatest, lane_words[i]);
        }
        folded_words[lane] = greatest;
    }
    workgroupBarrier();
    var greatest = 0u;
    for (var i = 0u; i < FOLDED_WORDS; i += 1u) {
        greatest = max(greatest, folded_words[i]);
    }
    return greatest;
}

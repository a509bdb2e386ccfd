// Totals of what eight neighbours have summed, who halve among them what is left to sum: value k of lane i is that of
// output i mod EACH of theirs and row 2k, or 2k + 1 of the upper four.

fn output_of(lane: u32, k: u32) -> u32 { return first_of(lane) + lane % EACH; }
fn row_of(lane: u32, k: u32) -> u32 { return 2u * k + lane % NEIGHBOURS / EACH; }

fn totals(sums: ptr<function, array<vec4<i32>, COLUMNS>>, lane: u32) -> array<i32, VALUES> {
    var all: array<i32, VALUES>;
    for (var k = 0u; k < VALUES; k += 1u) {
        let even = total_of_each_four((*sums)[2u * k], lane);
        var odd = even;
        if COLUMNS > 1u {
            odd = total_of_each_four((*sums)[min(2u * k + 1u, COLUMNS - 1u)], lane);
        }
        let is_odd = (lane & 4u) != 0u;
        all[k] = select(even, odd, is_odd) + subgroupShuffleXor(select(odd, even, is_odd), 4u);
    }
    return all;
}

// The four lower of the neighbours have the totals of one output each, and so have the four upper.
fn total_of_each_four(sums: vec4<i32>, lane: u32) -> i32 {
    let is_upper = (lane & 2u) != 0u;
    let two = select(sums.xy, sums.zw, is_upper) + subgroupShuffleXor(select(sums.zw, sums.xy, is_upper), 2u);
    let is_odd = (lane & 1u) != 0u;
    return select(two.x, two.y, is_odd) + subgroupShuffleXor(select(two.y, two.x, is_odd), 1u);
}

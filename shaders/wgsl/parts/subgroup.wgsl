// Eight neighbouring lanes of a workgroup, from a multiple of eight on, lie side by side in one subgroup, which may be
// larger. WGSL does not promise that: a kernel is built on it only where subgroups have eight lanes or more, and
// drivers fill them in order where a workgroup has one dimension. A device's self-test finds another.

const NEIGHBOURS: u32 = 8u;

fn total_of_neighbours(value: i32) -> i32 {
    let two = value + subgroupShuffleXor(value, 1u);
    let four = two + subgroupShuffleXor(two, 2u);
    return four + subgroupShuffleXor(four, 4u);
}

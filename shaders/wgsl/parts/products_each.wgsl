// How the few products of a workgroup fall to its lanes: LANES_EACH lanes sum EACH outputs of all rows.

const EACH: u32 = 4u;
const LANES_EACH: u32 = 8u;
const VALUES: u32 = (COLUMNS + 1u) / 2u;  // OUTPUTS × COLUMNS / LANES, or one

fn first_of(lane: u32) -> u32 { return lane / LANES_EACH * EACH; }

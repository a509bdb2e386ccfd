// How the few products of a workgroup fall to its lanes: LANES_EACH lanes sum EACH outputs of all rows, then value k of
// lane i is that of output (i + k × LANES) mod OUTPUTS.

const EACH: u32 = 4u;
const LANES_EACH: u32 = 8u;
const VALUES: u32 = (COLUMNS + 1u) / 2u;  // OUTPUTS × COLUMNS / LANES, or one

var<workgroup> partial: array<vec4<i32>, LANES * COLUMNS>;

fn first_of(lane: u32) -> u32 { return lane / LANES_EACH * EACH; }
fn output_of(lane: u32, k: u32) -> u32 { return (lane + k * LANES) % OUTPUTS; }
fn row_of(lane: u32, k: u32) -> u32 { return (lane + k * LANES) / OUTPUTS; }

// Where the lanes of value k have put their sums, and which of the four is its.
fn partial_at(lane: u32, k: u32) -> vec2<u32> {
    let output = output_of(lane, k);
    return vec2<u32>(row_of(lane, k) % COLUMNS * LANES + output / EACH * LANES_EACH, output % EACH);
}

// Totals of what lanes have summed, through the workgroup's memory: value k of lane i is that of output
// (i + k × LANES) mod OUTPUTS.

var<workgroup> partial: array<vec4<i32>, LANES * COLUMNS>;

fn output_of(lane: u32, k: u32) -> u32 { return (lane + k * LANES) % OUTPUTS; }
fn row_of(lane: u32, k: u32) -> u32 { return (lane + k * LANES) / OUTPUTS; }

// Where the lanes of value k have put their sums, and which of the four is its.
fn partial_at(lane: u32, k: u32) -> vec2<u32> {
    let output = output_of(lane, k);
    return vec2<u32>(row_of(lane, k) % COLUMNS * LANES + output / EACH * LANES_EACH, output % EACH);
}

fn totals(sums: ptr<function, array<vec4<i32>, COLUMNS>>, lane: u32) -> array<i32, VALUES> {
    for (var column = 0u; column < COLUMNS; column += 1u) {
        partial[column * LANES + lane] = (*sums)[column];
    }
    workgroupBarrier();
    var all: array<i32, VALUES>;
    for (var k = 0u; k < VALUES; k += 1u) {
        let at = partial_at(lane, k);
        for (var i = 0u; i < LANES_EACH; i += 1u) {
            all[k] += partial[at.x + i][at.y];
        }
    }
    // Another side may follow in the same memory.
    workgroupBarrier();
    return all;
}

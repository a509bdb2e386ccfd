// Products of COLUMNS rows with a matrix that has one scale a row, block by block through the workgroup's memory. Lane i
// has the 16 values of rows i / 8 + {0, 8, 16, 24} and outputs i mod 8 + {0, 8, 16, 24}.

const VALUES: u32 = 16u;
const SIDE: u32 = 8u;                 // lanes along each edge of the tile
const W_QUADS: u32 = 3u;              // of a row in the workgroup's memory, odd so that rows begin in different banks
const X_QUADS: u32 = 9u;
const BLOCK_X_QUADS: u32 = 8u;        // vectors of a block's activations

var<workgroup> w_tile: array<vec4<u32>, 96>;   // OUTPUTS × W_QUADS
var<workgroup> x_tile: array<vec4<u32>, 288>;  // COLUMNS × X_QUADS

fn output_of(lane: u32, k: u32) -> u32 { return lane % SIDE + k % 4u * SIDE; }
fn row_of(lane: u32, k: u32) -> u32 { return lane / SIDE + k / 4u * SIDE; }

fn products(side: u32, first_output: u32, first_row: u32, lane: u32) -> array<f32, VALUES> {
    var sums: array<vec4<i32>, 4>;
    for (var block = 0u; block < shape.blocks; block += 1u) {
        workgroupBarrier();
        load(side, first_output, first_row, block, lane);
        workgroupBarrier();
        for (var quad = 0u; quad < BLOCK_QUADS; quad += 1u) {
            let at = lane % SIDE * W_QUADS + quad;
            let a = w_tile[at];
            let b = w_tile[at + SIDE * W_QUADS];
            let c = w_tile[at + 2u * SIDE * W_QUADS];
            let d = w_tile[at + 3u * SIDE * W_QUADS];
            for (var plane = 0u; plane < PLANES; plane += 1u) {
                let a_codes = codes_of(a, plane);
                let b_codes = codes_of(b, plane);
                let c_codes = codes_of(c, plane);
                let d_codes = codes_of(d, plane);
                for (var i = 0u; i < 4u; i += 1u) {
                    let acts = x_tile[(lane / SIDE + i * SIDE) * X_QUADS + plane * PLANE_QUADS + quad];
                    sums[i] += vec4<i32>(
                        dot_quads(a_codes, acts), dot_quads(b_codes, acts), dot_quads(c_codes, acts), dot_quads(d_codes, acts));
                }
            }
        }
    }
    var values: array<f32, VALUES>;
    for (var k = 0u; k < VALUES; k += 1u) {
        let output = first_output + output_of(lane, k);
        let row = first_row + row_of(lane, k);
        let dot = sums[k / 4u][k % 4u] - x_sum(side, row);
        values[k] = scaled(side, min(output, shape.outputs - 1u), row, dot, addend_at(row, output));
    }
    return values;
}

fn load(side: u32, first_output: u32, first_row: u32, block: u32, lane: u32) {
    let output = min(first_output + lane / BLOCK_QUADS, shape.outputs - 1u);
    let quad = lane % BLOCK_QUADS;
    w_tile[lane / BLOCK_QUADS * W_QUADS + quad] = w_quad(side, (output * shape.blocks + block) * BLOCK_QUADS + quad);
    for (var i = lane; i < COLUMNS * BLOCK_X_QUADS; i += LANES) {
        let row = i / BLOCK_X_QUADS;
        let at = i % BLOCK_X_QUADS;
        x_tile[row * X_QUADS + at] = x_quad(side, first_row + row, block * BLOCK_X_QUADS + at);
    }
}

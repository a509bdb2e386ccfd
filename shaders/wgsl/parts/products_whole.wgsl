// Products with a matrix that has one scale a row.

fn products(side: u32, first_output: u32, first_row: u32, lane: u32) -> array<f32, VALUES> {
    var sums: array<vec4<i32>, COLUMNS>;
    let quads = shape.blocks * BLOCK_QUADS;
    let rows = w_rows(side, first_output + first_of(lane));
    for (var quad = lane % LANES_EACH; quad < quads; quad += LANES_EACH) {
        let a = w_quad(side, rows.x + quad);
        let b = w_quad(side, rows.y + quad);
        let c = w_quad(side, rows.z + quad);
        let d = w_quad(side, rows.w + quad);
        for (var plane = 0u; plane < PLANES; plane += 1u) {
            let at = (quad / BLOCK_QUADS * PLANES + plane) * PLANE_QUADS + quad % BLOCK_QUADS;
            let a_codes = codes_of(a, plane);
            let b_codes = codes_of(b, plane);
            let c_codes = codes_of(c, plane);
            let d_codes = codes_of(d, plane);
            for (var column = 0u; column < COLUMNS; column += 1u) {
                let acts = x_quad(side, first_row + column, at);
                sums[column] += vec4<i32>(
                    dot_quads(a_codes, acts), dot_quads(b_codes, acts), dot_quads(c_codes, acts), dot_quads(d_codes, acts));
            }
        }
    }
    let sum = totals(&sums, lane);
    var values: array<f32, VALUES>;
    for (var k = 0u; k < VALUES; k += 1u) {
        let output = first_output + output_of(lane, k);
        let row = first_row + row_of(lane, k) % COLUMNS;
        let dot = sum[k] - x_sum(side, row);
        values[k] = scaled(side, min(output, shape.outputs - 1u), row, dot, addend_at(row, output));
    }
    return values;
}

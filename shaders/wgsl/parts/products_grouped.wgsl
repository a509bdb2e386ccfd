// Products with a matrix that has a scale for each group of columns: lanes sum a group each, then these are added up
// in ascending order.

fn products(side: u32, first_output: u32, first_row: u32, lane: u32) -> array<f32, VALUES> {
    var values: array<f32, VALUES>;
    let groups = shape.groups[side];
    let rows = w_rows(side, first_output + first_of(lane));
    for (var first = 0u; first < groups; first += LANES_EACH) {
        let group = first + lane % LANES_EACH;
        for (var column = 0u; column < COLUMNS; column += 1u) {
            let row = first_row + column;
            partial[column * LANES + lane] = vec4<i32>(
                group_dot(side, rows.x, row, group), group_dot(side, rows.y, row, group),
                group_dot(side, rows.z, row, group), group_dot(side, rows.w, row, group));
        }
        workgroupBarrier();
        for (var k = 0u; k < VALUES; k += 1u) {
            let at = partial_at(lane, k);
            let output = min(first_output + output_of(lane, k), shape.outputs - 1u);
            for (var i = 0u; i < min(LANES_EACH, groups - first); i += 1u) {
                values[k] = fma(f32(partial[at.x + i][at.y]), w_scale(side, output, first + i), values[k]);
            }
        }
        workgroupBarrier();
    }
    for (var k = 0u; k < VALUES; k += 1u) {
        let row = first_row + row_of(lane, k) % COLUMNS;
        let scale = x_scale(side, row);
        let addend = addend_at(row, first_output + output_of(lane, k));
        let output = min(first_output + output_of(lane, k), shape.outputs - 1u);
        if shape.bias[side] == BIAS_BEFORE_SCALE {
            // Only beside a grouped matrix: this one has one scale a row.
            values[k] = fma(values[k], scale, bias_at(side, output) * w_scale(side, output, 0u)) + addend;
        } else {
            values[k] = plus_bias(side, output, values[k], scale, addend);
        }
    }
    return values;
}

fn group_dot(side: u32, first_quad: u32, row: u32, group: u32) -> i32 {
    let planes = shape.group_planes[side];
    let end = min((group + 1u) * planes, shape.blocks * PLANES);
    var sum = 0;
    for (var plane = group * planes; plane < end; plane += 1u) {
        for (var half = 0u; half < PLANE_QUADS; half += 1u) {
            let packed = w_quad(side, first_quad + plane / PLANES * BLOCK_QUADS + half);
            let acts = x_quad(side, row, plane * PLANE_QUADS + half);
            sum += dot_quads(codes_of(packed, plane % PLANES), acts) - dot_quads(vec4<u32>(ONES), acts);
        }
    }
    return sum;
}

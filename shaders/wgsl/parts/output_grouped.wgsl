// An output of a matrix with a scale for each group of columns, groups ascending: each lane sums a group, then
// lane c < COLUMNS adds them up for row `first_row + c`.

fn output_of(side: u32, output: u32, first_row: u32, lane: u32, index: u32) -> f32 {
    var acc = 0.0;
    let groups = shape.groups[side];
    for (var first = 0u; first < groups; first += LANES_EACH) {
        for (var c = 0u; c < COLUMNS; c += 1u) {
            partial[index][c] = group_dot(side, output, first_row + c, first + lane);
        }
        workgroupBarrier();
        if lane < COLUMNS {
            for (var group = first; group < min(first + LANES_EACH, groups); group += 1u) {
                acc += f32(partial[index - lane + group - first][lane]) * w_scale(side, output, group);
            }
        }
        workgroupBarrier();
    }
    if lane >= COLUMNS {
        return 0.0;
    }
    let y = acc * x_scale(side, first_row + lane);
    if shape.bias[side] == BIAS_BEFORE_SCALE {
        // Only beside a grouped matrix: this one has one scale a row.
        return y + bias_of(side, output) * w_scale(side, output, 0u);
    }
    return select(y, y + bias_of(side, output), shape.bias[side] == BIAS_AFTER_SCALE);
}

fn group_dot(side: u32, output: u32, row: u32, group: u32) -> i32 {
    let planes = shape.group_planes[side];
    let end = min((group + 1u) * planes, shape.blocks * PLANES);
    var sum = 0;
    for (var plane = group * planes; plane < end; plane += 1u) {
        for (var half = 0u; half < PLANE_QUADS; half += 1u) {
            let packed = w_quad(side, (output * shape.blocks + plane / PLANES) * BLOCK_QUADS + half);
            let codes = (packed >> vec4<u32>(2u * (plane % PLANES))) & vec4<u32>(CODES);
            let acts = x_quad(side, row, plane * PLANE_QUADS + half);
            sum += dot_quads(codes, acts) - dot_quads(vec4<u32>(ONES), acts);
        }
    }
    return sum;
}

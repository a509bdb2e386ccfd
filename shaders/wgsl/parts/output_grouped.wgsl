// An output of a matrix with a scale for each group of columns, groups ascending: each lane sums
// a group, then lane c < COLUMNS adds them up for row `first_row + c`.

const ONES: u32 = 0x01010101u;   // turns codes into weights: code − 1

fn output_of(output: u32, first_row: u32, lane: u32, index: u32) -> f32 {
    var acc = 0.0;
    for (var first = 0u; first < shape.groups; first += LANES) {
        for (var c = 0u; c < COLUMNS; c += 1u) {
            partial[index][c] = group_dot(output, min(first_row + c, shape.capacity - 1u), first + lane);
        }
        workgroupBarrier();
        if lane < COLUMNS {
            for (var group = first; group < min(first + LANES, shape.groups); group += 1u) {
                acc += f32(partial[index - lane + group - first][lane]) * w_scale(output, group);
            }
        }
        workgroupBarrier();
    }
    let y = acc * x_scale(min(first_row + lane, shape.capacity - 1u));
    return select(y, y + bias_of(output), shape.bias == BIAS_AFTER_SCALE);
}

fn group_dot(output: u32, row: u32, group: u32) -> i32 {
    let planes = shape.blocks * PLANES;
    var sum = 0;
    for (var plane = group * shape.group_planes; plane < min((group + 1u) * shape.group_planes, planes); plane += 1u) {
        for (var half = 0u; half < 2u; half += 1u) {
            let packed = w[(output * shape.blocks + plane / PLANES) * 2u + half];
            let codes = (packed >> vec4<u32>(2u * (plane % PLANES))) & vec4<u32>(CODES);
            let acts = x[(row * planes + plane) * 2u + half];
            sum += dot4(codes.x, acts.x) + dot4(codes.y, acts.y) + dot4(codes.z, acts.z) + dot4(codes.w, acts.w)
                - dot4(ONES, acts.x) - dot4(ONES, acts.y) - dot4(ONES, acts.z) - dot4(ONES, acts.w);
        }
    }
    return sum;
}

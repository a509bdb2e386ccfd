// An output of a matrix with one scale a row. Lane c < COLUMNS gets that of row `first_row + c`.

fn output_of(output: u32, first_row: u32, lane: u32, index: u32) -> f32 {
    var sums: array<i32, COLUMNS>;
    let quads = shape.blocks * 2u;   // vectors of four words in a row
    for (var quad = lane; quad < quads; quad += LANES) {
        let packed = w[output * quads + quad];
        for (var plane = 0u; plane < PLANES; plane += 1u) {
            let codes = (packed >> vec4<u32>(2u * plane)) & vec4<u32>(CODES);
            for (var c = 0u; c < COLUMNS; c += 1u) {
                let block = min(first_row + c, shape.capacity - 1u) * shape.blocks + quad / 2u;
                let acts = x[block * PLANES * 2u + plane * 2u + quad % 2u];
                sums[c] += dot4(codes.x, acts.x) + dot4(codes.y, acts.y)
                    + dot4(codes.z, acts.z) + dot4(codes.w, acts.w);
            }
        }
    }
    partial[index] = sums;
    workgroupBarrier();
    for (var width = LANES / 2u; width > 0u; width /= 2u) {
        if lane < width {
            for (var c = 0u; c < COLUMNS; c += 1u) {
                partial[index][c] += partial[index + width][c];
            }
        }
        workgroupBarrier();
    }
    if lane >= COLUMNS {
        return 0.0;
    }
    let row = min(first_row + lane, shape.capacity - 1u);
    let dot = partial[index - lane][lane] - x_sum(row);
    return scaled(dot, x_scale(row), w_scale(output, 0u), shape.bias, bias_of(output));
}

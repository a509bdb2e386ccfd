// An output of a matrix with one scale a row. Lane c < COLUMNS of the output gets that of row `first_row + c`.

fn output_of(side: u32, output: u32, first_row: u32, lane: u32, index: u32) -> f32 {
    var sums: array<i32, COLUMNS>;
    let quads = shape.blocks * BLOCK_QUADS;
    for (var quad = lane; quad < quads; quad += LANES_EACH) {
        let packed = w_quad(side, output * quads + quad);
        for (var plane = 0u; plane < PLANES; plane += 1u) {
            let codes = (packed >> vec4<u32>(2u * plane)) & vec4<u32>(CODES);
            let at = (quad / BLOCK_QUADS * PLANES + plane) * PLANE_QUADS + quad % BLOCK_QUADS;
            for (var c = 0u; c < COLUMNS; c += 1u) {
                sums[c] += dot_quads(codes, x_quad(side, first_row + c, at));
            }
        }
    }
    partial[index] = sums;
    workgroupBarrier();
    for (var width = LANES_EACH / 2u; width > 0u; width /= 2u) {
        if lane < width {
            for (var c = 0u; c < COLUMNS; c += 1u) {
                partial[index][c] += partial[index + width][c];
            }
        }
        workgroupBarrier();
    }
    var y = 0.0;
    if lane < COLUMNS {
        let row = first_row + lane;
        let dot = f32(partial[index - lane][lane] - x_sum(side, row));
        let bias = bias_of(side, output);
        let w = w_scale(side, output, 0u);
        if shape.bias[side] == BIAS_BEFORE_SCALE {
            y = (dot * x_scale(side, row) + bias) * w;
        } else {
            y = dot * (x_scale(side, row) * w);
            y = select(y, y + bias, shape.bias[side] == BIAS_AFTER_SCALE);
        }
    }
    // Another output may follow in the same memory.
    workgroupBarrier();
    return y;
}

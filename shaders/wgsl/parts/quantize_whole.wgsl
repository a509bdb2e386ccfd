// A row of `quantize` with one scale.

fn quantize(row: u32, lane: u32) {
    let scale_and_sum = quantize_row(row, lane);
    if lane == 0u {
        put_scale(row, 0u, scale_and_sum.x);
        codes[shape.capacity * (shape.words + 1u) + row] = scale_and_sum.y;
    }
}

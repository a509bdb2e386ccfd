// 1 / sqrt(Σ x² / width + eps) of a row of x. Element i goes to lane i mod LANES.

fn inverse_rms(row: u32, width: u32, eps: f32, lane: u32) -> f32 {
    var squares = 0.0;
    for (var i = lane; i < width; i += LANES) {
        let value = x[row * width + i];
        squares += value * value;
    }
    return 1.0 / sqrt(sum_over_lanes(lane, squares) / f32(width) + eps);
}

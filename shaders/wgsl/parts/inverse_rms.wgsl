// 1 / sqrt(Σ x² / width + eps) of a row of x. Four neighbours at a time go to lane (i / 4) mod LANES.
// By `fma`, as parts/linear.wgsl tells: a row is quantized in its own kernel or in passing.

fn inverse_rms(row: u32, width: u32, eps: f32, lane: u32) -> f32 {
    var squares = 0.0;
    for (var four = lane; four * 4u < width; four += LANES) {
        let values = x_four(row, width, four);
        squares = fma(values.x, values.x, squares);
        squares = fma(values.y, values.y, squares);
        squares = fma(values.z, values.z, squares);
        squares = fma(values.w, values.w, squares);
    }
    return 1.0 / sqrt(sum_over_lanes(lane, squares) / f32(width) + eps);
}

// Four neighbours of a row of x, zeros beyond it.
fn x_four(row: u32, width: u32, four: u32) -> vec4<f32> {
    let at = row * width + four * 4u;
    if four * 4u + 4u <= width && at % 4u == 0u {
        return x[at / 4u];
    }
    var values = vec4<f32>();
    for (var i = 0u; i < 4u && four * 4u + i < width; i += 1u) {
        values[i] = x[(at + i) / 4u][(at + i) % 4u];
    }
    return values;
}

// Zeros beyond the row do not need a gain.
fn normed_four(row: u32, width: u32, four: u32, inverse: f32) -> vec4<f32> {
    return x_four(row, width, four) * inverse * gain[four];
}

// Codes of a row of x, or of its norm, go to `put_codes`, four a word; the rest is their scale's bits and their sum.

const NOT_FINITE: u32 = 0x7f800000u;
const LEAST_ABSMAX: f32 = 1e-5;
const MOST_CODE: f32 = 127.0;

fn quantize_row(row: u32, lane: u32) -> vec2<u32> {
    var inverse = 1.0;
    if shape.has_norm != 0u {
        inverse = inverse_rms(row, shape.x_width, shape.eps, lane);
    }
    var most = 0u;
    for (var i = lane; i < shape.x_width; i += LANES) {
        most = max(most, bitcast<u32>(normed(row, i, inverse)) & 0x7fffffffu);
    }
    most = greatest_over_lanes(lane, most);
    let is_finite = most < NOT_FINITE;
    let absmax = max(bitcast<f32>(most), LEAST_ABSMAX);
    let factor = MOST_CODE / absmax;
    var sum = 0;
    for (var word = lane; word < shape.words; word += LANES) {
        var packed = 0u;
        for (var k = 0u; k < 4u; k += 1u) {
            let i = word * 4u + k;
            if i < shape.x_width && is_finite {
                let code = i32(clamp(round(normed(row, i, inverse) * factor), -MOST_CODE, MOST_CODE));
                packed |= (bitcast<u32>(code) & 0xffu) << (8u * k);
                sum += code;
            }
        }
        put_codes(row, word, packed);
    }
    sum = total_over_lanes(lane, sum);
    return vec2<u32>(select(0x7fc00000u, bitcast<u32>(absmax / MOST_CODE), is_finite), bitcast<u32>(sum));
}

fn normed(row: u32, i: u32, inverse: f32) -> f32 {
    let element = x[row * shape.x_width + i];
    if shape.has_norm == 0u {
        return element;
    }
    return element * inverse * gain[i];
}

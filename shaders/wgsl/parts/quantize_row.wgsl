// Codes of a row of x, or of its norm, go to `put_codes`, four a word; the rest is their scale's bits and their sum.

const NOT_FINITE: u32 = 0x7f800000u;
const MIN_ABSMAX: f32 = 1e-5;
const MAX_CODE: f32 = 127.0;

fn quantize_row(row: u32, lane: u32) -> vec2<u32> {
    var inverse = 1.0;
    if shape.has_norm != 0u {
        inverse = inverse_rms(row, shape.x_width, shape.eps, lane);
    }
    var bits = vec4<u32>();
    for (var four = lane; four * 4u < shape.x_width; four += LANES) {
        bits = max(bits, bitcast<vec4<u32>>(entering(row, four, inverse)) & vec4<u32>(0x7fffffffu));
    }
    let most = greatest_over_lanes(lane, max(max(bits.x, bits.y), max(bits.z, bits.w)));
    let is_finite = most < NOT_FINITE;
    let absmax = max(bitcast<f32>(most), MIN_ABSMAX);
    let factor = MAX_CODE / absmax;
    var sums = vec4<i32>();
    for (var word = lane; word < shape.words; word += LANES) {
        var codes = vec4<i32>();
        if word * 4u < shape.x_width && is_finite {
            let scaled = round(entering(row, word, inverse) * factor);
            codes = vec4<i32>(clamp(scaled, vec4<f32>(-MAX_CODE), vec4<f32>(MAX_CODE)));
        }
        sums += codes;
        let bytes = bitcast<vec4<u32>>(codes) & vec4<u32>(0xffu);
        put_codes(row, word, bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u));
    }
    let sum = total_over_lanes(lane, sums.x + sums.y + sums.z + sums.w);
    return vec2<u32>(select(0x7fc00000u, bitcast<u32>(absmax / MAX_CODE), is_finite), bitcast<u32>(sum));
}

fn entering(row: u32, four: u32, inverse: f32) -> vec4<f32> {
    if shape.has_norm == 0u {
        return x_four(row, shape.x_width, four);
    }
    return normed_four(row, shape.x_width, four, inverse);
}

// How a row of x, or of its norm, becomes codes: all of it, or a group of its columns, from the bits of the greatest
// magnitude there.

const NOT_FINITE: u32 = 0x7f800000u;
const MIN_ABSMAX: f32 = 1e-5;
const MAX_CODE: f32 = 127.0;

struct Quantization {
    is_finite: bool,
    absmax: f32,
    factor: f32,
}

fn quantization_of(most: u32) -> Quantization {
    let absmax = max(bitcast<f32>(most), MIN_ABSMAX);
    return Quantization(most < NOT_FINITE, absmax, MAX_CODE / absmax);
}

fn scale_bits(by: Quantization) -> u32 {
    return select(0x7fc00000u, bitcast<u32>(by.absmax / MAX_CODE), by.is_finite);
}

// Four neighbours, zeros beyond the row.
fn four_codes(by: Quantization, row: u32, word: u32, inverse: f32) -> vec4<i32> {
    if word * 4u >= shape.x_width || !by.is_finite {
        return vec4<i32>();
    }
    let scaled = round(entering(row, word, inverse) * by.factor);
    return vec4<i32>(clamp(scaled, vec4<f32>(-MAX_CODE), vec4<f32>(MAX_CODE)));
}

fn pack(codes: vec4<i32>) -> u32 {
    let bytes = bitcast<vec4<u32>>(codes) & vec4<u32>(0xffu);
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}

fn magnitudes(row: u32, four: u32, inverse: f32) -> vec4<u32> {
    return bitcast<vec4<u32>>(entering(row, four, inverse)) & vec4<u32>(0x7fffffffu);
}

fn greatest_of_four(words: vec4<u32>) -> u32 { return max(max(words.x, words.y), max(words.z, words.w)); }

fn entering(row: u32, four: u32, inverse: f32) -> vec4<f32> {
    if shape.has_norm == 0u {
        return x_four(row, shape.x_width, four);
    }
    return normed_four(row, shape.x_width, four, inverse);
}

// What a norm multiplies the row by.
fn inverse_of(row: u32, lane: u32) -> f32 {
    if shape.has_norm == 0u {
        return 1.0;
    }
    return inverse_rms(row, shape.x_width, shape.eps, lane);
}

// Codes of a row, or of its norm, go to `codes.put(word, packed)`, four a word.

const u32 NOT_FINITE = 0x7f800000u;
const u32 NOT_A_NUMBER = 0x7fc00000u;
const float MIN_ABSMAX = 1e-5f;
const float MAX_CODE = 127.0f;

struct QuantizedRow {
    float scale;
    i32 sum;    // of its codes
};

struct Norm {
    const float* gain;  // [width], or nothing
    float inverse;

    __device__ float of(const float* x, u32 i) const
    {
        return gain == nullptr ? x[i] : x[i] * inverse * gain[i];
    }
};

template <class Codes>
__device__ QuantizedRow quantize_row(const float* x, u32 width, u32 words, const Norm& norm, u32 lane, Codes& codes)
{
    u32 most = 0;
    for (u32 i = lane; i < width; i += LANES) {
        most = greatest_of(most, __float_as_uint(norm.of(x, i)) & 0x7fffffffu);
    }
    most = greatest_over_block(lane, most);
    const bool is_finite = most < NOT_FINITE;
    const float found = __uint_as_float(most);
    const float absmax = found < MIN_ABSMAX ? MIN_ABSMAX : found;
    const float factor = MAX_CODE / absmax;
    i32 sum = 0;
    for (u32 word = lane; word < words; word += LANES) {
        u32 packed = 0;
#pragma unroll
        for (u32 k = 0; k < 4; k += 1) {
            const u32 i = word * 4 + k;
            if (i < width && is_finite) {
                const i32 code = code_of(norm.of(x, i) * factor);
                packed |= ((u32)code & 0xffu) << (8 * k);
                sum += code;
            }
        }
        codes.put(word, packed);
    }
    sum = total_over_block(lane, sum);
    return QuantizedRow{is_finite ? absmax / MAX_CODE : __uint_as_float(NOT_A_NUMBER), sum};
}

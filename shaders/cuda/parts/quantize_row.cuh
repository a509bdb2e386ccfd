// Codes of a row, or of its norm, go to `codes.put(word, packed)`, four a word.

const u32 NOT_FINITE = 0x7f800000u;
const u32 NOT_A_NUMBER = 0x7fc00000u;
const float MIN_ABSMAX = 1e-5f;
const float MAX_CODE = 127.0f;

// How a row becomes codes, from the bits of its greatest magnitude.
struct Quantization {
    bool is_finite;
    float absmax;
    float factor;

    __device__ __forceinline__ explicit Quantization(u32 most) : is_finite(most < NOT_FINITE)
    {
        const float found = __uint_as_float(most);
        absmax = found < MIN_ABSMAX ? MIN_ABSMAX : found;
        factor = MAX_CODE / absmax;
    }

    __device__ __forceinline__ float scale() const
    {
        return is_finite ? absmax / MAX_CODE : __uint_as_float(NOT_A_NUMBER);
    }

    // A word of four codes, which are added to the sum. Zeros beyond a row become zeros.
    __device__ __forceinline__ u32 pack(const float (&values)[4], i32& sum) const
    {
        u32 packed = 0;
#pragma unroll
        for (u32 k = 0; k < 4; k += 1) {
            const i32 code = is_finite ? code_of(values[k] * factor) : 0;
            packed |= ((u32)code & 0xffu) << (8 * k);
            sum += code;
        }
        return packed;
    }
};

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
#pragma unroll 4
    for (u32 i = lane; i < width; i += LANES) {
        most = greatest_of(most, __float_as_uint(norm.of(x, i)) & 0x7fffffffu);
    }
    const Quantization quantization{greatest_over_block(lane, most)};
    i32 sum = 0;
    for (u32 word = lane; word < words; word += LANES) {
        float values[4];
#pragma unroll
        for (u32 k = 0; k < 4; k += 1) {
            const u32 i = word * 4 + k;
            values[k] = i < width ? norm.of(x, i) : 0.0f;
        }
        codes.put(word, quantization.pack(values, sum));
    }
    sum = total_over_block(lane, sum);
    return QuantizedRow{quantization.scale(), sum};
}

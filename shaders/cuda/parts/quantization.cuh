// How a row, or its norm, becomes codes: all of it, or a group of its columns.

const u32 NOT_FINITE = 0x7f800000u;
const u32 NOT_A_NUMBER = 0x7fc00000u;
const float MIN_ABSMAX = 1e-5f;
const float MAX_CODE = 127.0f;

// From the bits of the greatest magnitude.
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

struct Norm {
    const float* gain;  // [width], or nothing
    float inverse;

    __device__ float of(const float* x, u32 i) const
    {
        return gain == nullptr ? x[i] : x[i] * inverse * gain[i];
    }

    // Four neighbours, zeros beyond the row.
    __device__ __forceinline__ void four(float (&values)[4], const float* x, u32 width, u32 word) const
    {
#pragma unroll
        for (u32 k = 0; k < 4; k += 1) {
            const u32 i = word * 4 + k;
            values[k] = i < width ? of(x, i) : 0.0f;
        }
    }
};

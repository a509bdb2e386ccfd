// quantize: int8 codes and one scale for each row of x, or of its norm
//
// Twin:      crates/setun-ops/src/quantize.rs
// Layout:    of codes: [capacity, words] of four codes, then [capacity] scales, then [capacity] sums of codes
// Grid:      one block a row

struct Shape {
    u32 x_width;
    u32 words;      // of a row of codes, padded to whole blocks
    u32 capacity;   // rows that the buffers hold
    u32 wanted;
    u32 has_norm;
    float eps;
};

struct RowCodes {
    u32* words;

    __device__ __forceinline__ void put(u32 word, u32 packed) { words[word] = packed; }
};

extern "C" __global__ void __launch_bounds__(LANES) quantize(
    const Shape shape, const u32* __restrict__ step_words,
    const float* __restrict__ x,            // [rows, x_width]
    const float* __restrict__ gain,         // [x_width]
    u32* __restrict__ codes)
{
    const Step step{step_words};
    const u32 row = blockIdx.x, lane = threadIdx.x;
    if (row >= step.rows_of(shape.wanted)) {
        return;
    }
    const float* own = x + (size_t)row * shape.x_width;
    Norm norm{nullptr, 1.0f};
    if (shape.has_norm != 0) {
        norm = Norm{gain, inverse_rms(own, shape.x_width, shape.eps, lane)};
    }
    RowCodes row_codes{codes + (size_t)row * shape.words};
    const QuantizedRow quantized = quantize_row(own, shape.x_width, shape.words, norm, lane, row_codes);
    if (lane == 0) {
        u32* scales = codes + (size_t)shape.capacity * shape.words;
        scales[row] = __float_as_uint(quantized.scale);
        scales[shape.capacity + row] = (u32)quantized.sum;
    }
}

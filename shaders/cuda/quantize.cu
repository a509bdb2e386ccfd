// quantize: int8 codes of each row of x, or of its norm, and one scale or one for each group of columns
//
// Twin:      crates/setun-ops/src/quantize.rs
// Layout:    of codes: [capacity, words] of four codes, then [capacity, groups] scales; then, with one scale a row,
//            [capacity] sums of codes
// Grid:      one block a row

struct Shape {
    u32 x_width;
    u32 words;          // of a row of codes, padded to whole blocks
    u32 capacity;       // rows that the buffers hold
    u32 wanted;
    u32 has_norm;
    float eps;
    u32 groups;         // scales of a row
    u32 group_words;    // of the codes of a group
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
    quantize_row(shape, own, norm, row, lane, codes);
}

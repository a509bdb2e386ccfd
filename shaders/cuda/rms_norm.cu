// rms_norm: y[row, i] = (x[row, i] × (1 / sqrt(fold16(x²) / width + eps))) × gain[i]
//
// Twin:      crates/setun-ops/src/rms_norm.rs
// Grid:      one block a row of y

struct Shape {
    u32 width;
    float eps;
    u32 wanted;     // y holds the requested rows
    u32 gather;     // and x holds all
};

extern "C" __global__ void __launch_bounds__(LANES) rms_norm(
    const Shape shape, const u32* __restrict__ step_words,
    const float* __restrict__ x,            // [rows, width]
    const float* __restrict__ gain,         // [width]
    float* __restrict__ y)                  // [rows, width]
{
    const Step step{step_words};
    const u32 row = blockIdx.x, lane = threadIdx.x;
    if (row >= step.rows_of(shape.wanted)) {
        return;
    }
    const u32 source = shape.gather != 0 ? step.wanted_row(row) : row;
    const float* own = x + (size_t)source * shape.width;
    const float inverse = inverse_rms(own, shape.width, shape.eps, lane);
    for (u32 i = lane; i < shape.width; i += LANES) {
        y[(size_t)row * shape.width + i] = own[i] * inverse * gain[i];
    }
}

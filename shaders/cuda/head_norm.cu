// head_norm: a root-mean-square norm over each head of a row, in place
//
// Twin:      crates/setun-ops/src/head_norm.rs
// Grid:      one block a head (x) and a row (y)

struct Shape {
    u32 width;      // of a row
    u32 column;     // first of the first head
    u32 head_dim;
    float eps;
    u32 wanted;
};

extern "C" __global__ void __launch_bounds__(LANES) head_norm(
    const Shape shape, const u32* __restrict__ step_words,
    const float* __restrict__ gain,         // [head_dim]
    float* __restrict__ x)                  // [rows, width]
{
    const Step step{step_words};
    const u32 row = blockIdx.y, lane = threadIdx.x;
    if (row >= step.rows_of(shape.wanted)) {
        return;
    }
    float* own = x + (size_t)row * shape.width + shape.column + blockIdx.x * shape.head_dim;
    const float inverse = inverse_rms(own, shape.head_dim, shape.eps, lane);
    for (u32 i = lane; i < shape.head_dim; i += LANES) {
        own[i] = own[i] * inverse * gain[i];
    }
}

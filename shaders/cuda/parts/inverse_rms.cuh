// 1 / sqrt(fold16(x²) / width + eps) of a row, for every thread of a block. All of them bring squares.

const u32 STAGED = 4096;

__device__ float inverse_rms(const float* x, u32 width, float eps, u32 lane)
{
    __shared__ float squares[STAGED];
    float sum = 0.0f;
    for (u32 first = 0; first < width; first += STAGED) {
        const u32 count = min_of(width - first, STAGED);
        for (u32 i = lane; i < count; i += LANES) {
            squares[i] = x[first + i] * x[first + i];
        }
        __syncthreads();
        add_squares(sum, squares, count, lane);
        __syncthreads();
    }
    return inverse_rms_of(sum, width, eps, lane);
}

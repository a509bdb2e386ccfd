// 1 / sqrt(fold16(x²) / width + eps) of a row, for every thread of a block. All of them bring squares; the sums
// have 16 lanes and no more, as the order of a fold is fixed.

const u32 STAGED = 4096;

__device__ float inverse_rms(const float* x, u32 width, float eps, u32 lane)
{
    __shared__ float squares[STAGED];
    __shared__ float inverse;
    float sum = 0.0f;
    for (u32 first = 0; first < width; first += STAGED) {
        const u32 count = min_of(width - first, STAGED);
        for (u32 i = lane; i < count; i += LANES) {
            squares[i] = x[first + i] * x[first + i];
        }
        __syncthreads();
        if (lane < FOLD) {
#pragma unroll 16
            for (u32 i = lane; i < count; i += FOLD) {
                sum += squares[i];
            }
        }
        __syncthreads();
    }
    if (lane < 32) {
        sum = fold_lanes(sum);
    }
    if (lane == 0) {
        inverse = 1.0f / sqrtf(sum / (float)width + eps);
    }
    __syncthreads();
    return inverse;
}

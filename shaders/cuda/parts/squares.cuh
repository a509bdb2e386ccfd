// The sum of a row's squares, which lie in the block's memory: 16 lanes and no more add, as the order of a fold is fixed.

__device__ __forceinline__ void add_squares(float& sum, const float* squares, u32 count, u32 lane)
{
    if (lane < FOLD) {
#pragma unroll 16
        for (u32 i = lane; i < count; i += FOLD) {
            sum += squares[i];
        }
    }
}

// 1 / sqrt(fold16(x²) / width + eps), from the lanes' sums, for every thread of a block.
__device__ __forceinline__ float inverse_rms_of(float sum, u32 width, float eps, u32 lane)
{
    __shared__ float inverse;
    if (lane < 32) {
        sum = fold_lanes(sum);
    }
    if (lane == 0) {
        inverse = 1.0f / sqrtf(sum / (float)width + eps);
    }
    __syncthreads();
    return inverse;
}

// What all threads of a block agree on, where order does not matter.

__device__ u32 greatest_over_block(u32 lane, u32 value)
{
    __shared__ u32 of_warps[LANES / 32];
#pragma unroll
    for (u32 width = 16; width > 0; width /= 2) {
        value = greatest_of(value, __shfl_xor_sync(ALL, value, width));
    }
    if (lane % 32 == 0) {
        of_warps[lane / 32] = value;
    }
    __syncthreads();
    u32 greatest = of_warps[0];
    for (u32 warp = 1; warp < LANES / 32; warp += 1) {
        greatest = greatest_of(greatest, of_warps[warp]);
    }
    __syncthreads();
    return greatest;
}

__device__ i32 total_over_block(u32 lane, i32 value)
{
    __shared__ i32 of_warps[LANES / 32];
#pragma unroll
    for (u32 width = 16; width > 0; width /= 2) {
        value += __shfl_xor_sync(ALL, value, width);
    }
    if (lane % 32 == 0) {
        of_warps[lane / 32] = value;
    }
    __syncthreads();
    i32 total = 0;
    for (u32 warp = 0; warp < LANES / 32; warp += 1) {
        total += of_warps[warp];
    }
    __syncthreads();
    return total;
}

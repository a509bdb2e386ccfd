// Each sum grows by a product with its own four bytes, which no compiler can foresee.

template <u32 CHAINS>
__device__ __forceinline__ u32 sum_of_chains(u32 rounds, u32 codes, u32 activations)
{
    i32 sums[CHAINS];
#pragma unroll
    for (u32 i = 0; i < CHAINS; i += 1) {
        sums[i] = (i32)(threadIdx.x + i);
    }
#pragma unroll 4
    for (u32 round = 0; round < rounds; round += 1) {
#pragma unroll
        for (u32 i = 0; i < CHAINS; i += 1) {
            sums[i] = dot4(codes, (u32)sums[i], sums[i]);
        }
    }
    u32 all = 0;
#pragma unroll
    for (u32 i = 0; i < CHAINS; i += 1) {
        all += (u32)sums[i];
    }
    return all;
}

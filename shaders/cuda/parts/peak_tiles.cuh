// Each chain is a tile of a warp's, to which the product of two tiles is added in each round.

template <u32 CHAINS>
__device__ __forceinline__ u32 sum_of_chains(u32 rounds, u32 codes, u32 activations)
{
    const u32 a[4] = {codes, codes, codes, codes};
    i32 sums[CHAINS][4];
#pragma unroll
    for (u32 i = 0; i < CHAINS * 4; i += 1) {
        sums[i / 4][i % 4] = (i32)(threadIdx.x + i / 4);
    }
#pragma unroll 1
    for (u32 round = 0; round < rounds; round += 1) {
#pragma unroll
        for (u32 i = 0; i < CHAINS; i += 1) {
            add_tile(sums[i], a, activations, activations);
        }
    }
    u32 all = 0;
#pragma unroll
    for (u32 i = 0; i < CHAINS * 4; i += 1) {
        all += (u32)sums[i / 4][i % 4];
    }
    return all;
}

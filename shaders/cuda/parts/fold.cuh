// The one order of every float sum, crates/setun-ops/src/fold.rs: element i goes to lane i mod 16, ascending,
// then lanes fold 8, 4, 2, 1.

const u32 FOLD = 16;

// The last part, over 16 neighbouring threads of whole warps; the first of them gets it.
__device__ __forceinline__ float fold_lanes(float sum)
{
#pragma unroll
    for (u32 width = FOLD / 2; width > 0; width /= 2) {
        sum += __shfl_down_sync(ALL, sum, width, FOLD);
    }
    return sum;
}

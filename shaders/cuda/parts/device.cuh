// What is no plain C++: single instructions. A test on a processor has functions of the same names instead.

typedef unsigned int u32;
typedef int i32;

const u32 ALL = 0xffffffffu;    // threads of a warp

#ifdef __CUDACC__

// sum + Σ code × activation over four bytes, codes unsigned, activations signed.
__device__ __forceinline__ i32 dot4(u32 codes, u32 activations, i32 sum)
{
    i32 result;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(codes), "r"(activations), "r"(sum));
    return result;
}

// Exact for every number, subnormals too.
__device__ __forceinline__ float widen_f16(u32 half)
{
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"((unsigned short)half));
    return result;
}

#endif

__device__ __forceinline__ u32 min_of(u32 a, u32 b) { return a < b ? a : b; }
__device__ __forceinline__ u32 greatest_of(u32 a, u32 b) { return a > b ? a : b; }

// To the nearest integer, ties to even, within ±127.
__device__ __forceinline__ i32 code_of(float scaled)
{
    const float rounded = rintf(scaled);
    return (i32)(rounded > 127.0f ? 127.0f : rounded < -127.0f ? -127.0f : rounded);
}

__device__ __forceinline__ u32 word_of(const uint4& quad, u32 k)
{
    return k == 0 ? quad.x : k == 1 ? quad.y : k == 2 ? quad.z : quad.w;
}

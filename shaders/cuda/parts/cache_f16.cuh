// Vectors of a cache of f16: head_dim / 2 words.

__device__ __forceinline__ float2 cache_two(const u32* cache, u32 vector, u32 dim, u32 i)
{
    const u32 word = cache[(size_t)vector * (dim / 2) + i / 2];
    return make_float2(widen_f16(word & 0xffffu), widen_f16(word >> 16));
}

__device__ __forceinline__ float cache_one(const u32* cache, u32 vector, u32 dim, u32 i)
{
    const float2 both = cache_two(cache, vector, dim, i);
    return i % 2 == 0 ? both.x : both.y;
}

// Sixteen neighbours of a vector that has whole sixteens.
__device__ __forceinline__ void cache_sixteen(const u32* cache, u32 vector, u32 dim, u32 first, float (&values)[16])
{
    const uint4* quads = (const uint4*)(cache + (size_t)vector * (dim / 2) + first / 2);
#pragma unroll
    for (u32 i = 0; i < 16; i += 2) {
        const u32 word = word_of(quads[i / 8], i / 2 % 4);
        values[i] = widen_f16(word & 0xffffu);
        values[i + 1] = widen_f16(word >> 16);
    }
}

__device__ __forceinline__ float cache_scale(const u32* cache, u32 vector, u32 dim) { return 1.0f; }

// Vectors of a cache of f32: head_dim words.

__device__ __forceinline__ float cache_one(const u32* cache, u32 vector, u32 dim, u32 i)
{
    return __uint_as_float(cache[(size_t)vector * dim + i]);
}

__device__ __forceinline__ float2 cache_two(const u32* cache, u32 vector, u32 dim, u32 i)
{
    return make_float2(cache_one(cache, vector, dim, i), i + 1 < dim ? cache_one(cache, vector, dim, i + 1) : 0.0f);
}

// Sixteen neighbours of a vector that has whole sixteens.
__device__ __forceinline__ void cache_sixteen(const u32* cache, u32 vector, u32 dim, u32 first, float (&values)[16])
{
    const uint4* quads = (const uint4*)(cache + (size_t)vector * dim + first);
#pragma unroll
    for (u32 i = 0; i < 16; i += 1) {
        values[i] = __uint_as_float(word_of(quads[i / 4], i % 4));
    }
}

__device__ __forceinline__ float cache_scale(const u32* cache, u32 vector, u32 dim) { return 1.0f; }

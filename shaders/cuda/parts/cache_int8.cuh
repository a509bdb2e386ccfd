// Vectors of a cache of int8: words of four codes, then a word for the scale.

__device__ __forceinline__ u32 vector_words(u32 dim) { return (dim + 3) / 4 + 1; }

__device__ __forceinline__ float widen_code(u32 word, u32 i) { return (float)((i32)(word << (24 - 8 * i)) >> 24); }

__device__ __forceinline__ float cache_one(const u32* cache, u32 vector, u32 dim, u32 i)
{
    return widen_code(cache[(size_t)vector * vector_words(dim) + i / 4], i % 4);
}

// Four neighbours, zero beyond the vector.
__device__ __forceinline__ float4 cache_four(const u32* cache, u32 vector, u32 dim, u32 i)
{
    const u32 word = cache[(size_t)vector * vector_words(dim) + i / 4];
    return make_float4(
        widen_code(word, 0), i + 1 < dim ? widen_code(word, 1) : 0.0f, i + 2 < dim ? widen_code(word, 2) : 0.0f,
        i + 3 < dim ? widen_code(word, 3) : 0.0f);
}

__device__ __forceinline__ float cache_scale(const u32* cache, u32 vector, u32 dim)
{
    return __uint_as_float(cache[((size_t)vector + 1) * vector_words(dim) - 1]);
}

// Vectors of a cache of int8: words of four codes, then a word for the scale.

__device__ __forceinline__ u32 vector_words(u32 dim) { return (dim + 3) / 4 + 1; }

__device__ __forceinline__ float widen_code(u32 word, u32 i) { return (float)((i32)(word << (24 - 8 * i)) >> 24); }

__device__ __forceinline__ float cache_one(const u32* cache, u32 vector, u32 dim, u32 i)
{
    return widen_code(cache[(size_t)vector * vector_words(dim) + i / 4], i % 4);
}

__device__ __forceinline__ float2 cache_two(const u32* cache, u32 vector, u32 dim, u32 i)
{
    const u32 word = cache[(size_t)vector * vector_words(dim) + i / 4];
    return make_float2(widen_code(word, i % 4), widen_code(word, i % 4 + 1));
}

// Sixteen neighbours of a vector that has whole sixteens.
__device__ __forceinline__ void cache_sixteen(const u32* cache, u32 vector, u32 dim, u32 first, float (&values)[16])
{
    const u32* words = cache + (size_t)vector * vector_words(dim) + first / 4;
#pragma unroll
    for (u32 i = 0; i < 16; i += 1) {
        values[i] = widen_code(words[i / 4], i % 4);
    }
}

__device__ __forceinline__ float cache_scale(const u32* cache, u32 vector, u32 dim)
{
    return __uint_as_float(cache[((size_t)vector + 1) * vector_words(dim) - 1]);
}

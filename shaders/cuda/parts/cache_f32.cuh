// Vectors of a cache of f32: head_dim words.

__device__ __forceinline__ float cache_one(const u32* cache, u32 vector, u32 dim, u32 i)
{
    return __uint_as_float(cache[(size_t)vector * dim + i]);
}

// Four neighbours, zero beyond the vector.
__device__ __forceinline__ float4 cache_four(const u32* cache, u32 vector, u32 dim, u32 i)
{
    if (dim % 4 == 0) {
        const uint4 words = *(const uint4*)(cache + (size_t)vector * dim + i);
        return make_float4(
            __uint_as_float(words.x), __uint_as_float(words.y), __uint_as_float(words.z), __uint_as_float(words.w));
    }
    return make_float4(
        cache_one(cache, vector, dim, i), i + 1 < dim ? cache_one(cache, vector, dim, i + 1) : 0.0f,
        i + 2 < dim ? cache_one(cache, vector, dim, i + 2) : 0.0f,
        i + 3 < dim ? cache_one(cache, vector, dim, i + 3) : 0.0f);
}

__device__ __forceinline__ float cache_scale(const u32* cache, u32 vector, u32 dim) { return 1.0f; }

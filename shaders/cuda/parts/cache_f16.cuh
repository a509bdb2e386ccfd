// Vectors of a cache of f16: head_dim / 2 words.

__device__ __forceinline__ float cache_one(const u32* cache, u32 vector, u32 dim, u32 i)
{
    return widen_f16(cache[(size_t)vector * (dim / 2) + i / 2] >> (16 * (i % 2)) & 0xffffu);
}

// Four neighbours, zero beyond the vector.
__device__ __forceinline__ float4 cache_four(const u32* cache, u32 vector, u32 dim, u32 i)
{
    if (dim % 4 == 0) {
        const uint2 words = *(const uint2*)(cache + (size_t)vector * (dim / 2) + i / 2);
        return make_float4(
            widen_f16(words.x & 0xffffu), widen_f16(words.x >> 16), widen_f16(words.y & 0xffffu),
            widen_f16(words.y >> 16));
    }
    return make_float4(
        cache_one(cache, vector, dim, i), i + 1 < dim ? cache_one(cache, vector, dim, i + 1) : 0.0f,
        i + 2 < dim ? cache_one(cache, vector, dim, i + 2) : 0.0f,
        i + 3 < dim ? cache_one(cache, vector, dim, i + 3) : 0.0f);
}

__device__ __forceinline__ float cache_scale(const u32* cache, u32 vector, u32 dim) { return 1.0f; }

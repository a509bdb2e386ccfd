// A table of f32: a row is `stride` vectors of four words.

__device__ __forceinline__ float4 table_four(const u32* table, u32 row, u32 stride, u32 four)
{
    const uint4 words = *(const uint4*)(table + (size_t)row * stride * 4 + four * 4);
    return make_float4(
        __uint_as_float(words.x), __uint_as_float(words.y), __uint_as_float(words.z), __uint_as_float(words.w));
}

__device__ __forceinline__ float table_scale(const u32* table, u32 row, u32 stride) { return 1.0f; }

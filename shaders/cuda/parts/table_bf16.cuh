// A table of bf16: a row is `stride` vectors of four words.

__device__ __forceinline__ float4 table_four(const u32* table, u32 row, u32 stride, u32 four)
{
    const uint2 words = *(const uint2*)(table + (size_t)row * stride * 4 + four * 2);
    return make_float4(
        __uint_as_float(words.x << 16), __uint_as_float(words.x & 0xffff0000u), __uint_as_float(words.y << 16),
        __uint_as_float(words.y & 0xffff0000u));
}

__device__ __forceinline__ float table_scale(const u32* table, u32 row, u32 stride) { return 1.0f; }

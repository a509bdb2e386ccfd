// A table of int8 rows: a row is `stride` vectors of sixteen codes, its scale in the last of them.

__device__ __forceinline__ float4 table_four(const u32* table, u32 row, u32 stride, u32 four)
{
    const u32 codes = table[(size_t)row * stride * 4 + four];
    return make_float4(
        (float)((i32)(codes << 24) >> 24), (float)((i32)(codes << 16) >> 24), (float)((i32)(codes << 8) >> 24),
        (float)((i32)codes >> 24));
}

__device__ __forceinline__ float table_scale(const u32* table, u32 row, u32 stride)
{
    return __uint_as_float(table[((size_t)row * stride + stride - 1) * 4]);
}

// Products of tiles by a warp, and copies that go on beside them. A test on a processor has functions of the same
// names instead.

#ifdef __CUDACC__

// sums[16, 8] += a[16, 32] × b[32, 8], all int8. With g = lane / 4 and t = lane % 4 a thread has of `a` in rows
// g and g + 8 columns 4t.. (words 0 and 1) and 16 + 4t.. (words 2 and 3), of `b` the same in column g, and of
// `sums` columns 2t and 2t + 1 of row g, then of row g + 8.
__device__ __forceinline__ void add_tile(i32 (&sums)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Begins to copy a vector to the block's memory.
__device__ __forceinline__ void begin_copy(uint4* to, const uint4* from)
{
    const u32 place = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(place), "l"(from) : "memory");
}

// Waits for all that this thread has begun to copy.
__device__ __forceinline__ void finish_copies() { asm volatile("cp.async.wait_all;" : : : "memory"); }

#endif

// e^x as crates/setun-ops/src/exp.rs has it, to the bit.

__device__ float exp_f32(float x)
{
    const float ROUND = 12582912.0f;
    if (x != x) {
        return x;
    }
    if (x < -87.33654f) {
        return 0.0f;
    }
    if (x > 88.37626f) {
        return __uint_as_float(0x7f800000u);
    }
    const float shifted = x * 1.44269502f + ROUND;
    const float n = shifted - ROUND;
    const float r = (x - n * 0.6933594f) - n * -2.1219444e-4f;
    float p = 1.9875692e-4f;
    p = p * r + 1.3982e-3f;
    p = p * r + 8.333452e-3f;
    p = p * r + 4.1665796e-2f;
    p = p * r + 1.6666665e-1f;
    p = p * r + 5e-1f;
    const float mantissa = (p * (r * r) + r) + 1.0f;
    // The low bits of `shifted` are n, as ROUND's own low bits are zero.
    const u32 exponent = (__float_as_uint(shifted) - __float_as_uint(ROUND) + 127) << 23;
    return mantissa * __uint_as_float(exponent);
}

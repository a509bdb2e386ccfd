// By integers, as a device may lose subnormals.

fn widen_f16(half: u32) -> f32 {
    let magnitude = half & 0x7fffu;
    let sign = (half & 0x8000u) << 16u;
    if magnitude >= 0x7c00u {
        return bitcast<f32>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13u));
    }
    if magnitude < 0x400u {
        return bitcast<f32>(bitcast<u32>(f32(magnitude) * 5.9604644775390625e-8) | sign);
    }
    return bitcast<f32>(((magnitude << 13u) + 0x38000000u) | sign);
}

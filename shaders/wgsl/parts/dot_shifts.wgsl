// Four codes 0..=2 times four int8, where the language feature `packed_4x8_integer_dot_product` is missing.

fn dot4(codes: u32, activations: u32) -> i32 {
    let code = vec4<i32>(vec4<u32>(codes, codes >> 8u, codes >> 16u, codes >> 24u) & vec4<u32>(0xffu));
    let bytes = vec4<u32>(activations << 24u, activations << 16u, activations << 8u, activations);
    let products = code * (bitcast<vec4<i32>>(bytes) >> vec4<u32>(24u));
    return products.x + products.y + products.z + products.w;
}

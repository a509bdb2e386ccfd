// Four codes 0..=2 times four int8, by the language feature `packed_4x8_integer_dot_product`.

fn dot4(codes: u32, activations: u32) -> i32 {
    return dot4I8Packed(codes, activations);
}

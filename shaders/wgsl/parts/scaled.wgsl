// What becomes of an exact sum: crates/setun-ops/src/ternary_matmul.rs.

const NO_BIAS: u32 = 0u;
const BIAS_AFTER_SCALE: u32 = 1u;
const BIAS_BEFORE_SCALE: u32 = 2u;

fn scaled(dot: i32, x_scale: f32, w_scale: f32, kind: u32, bias: f32) -> f32 {
    if kind == BIAS_BEFORE_SCALE {
        return (f32(dot) * x_scale + bias) * w_scale;
    }
    let y = f32(dot) * (x_scale * w_scale);
    return select(y, y + bias, kind == BIAS_AFTER_SCALE);
}

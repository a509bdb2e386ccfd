// e^x with the coefficients of crates/setun-ops/src/exp.rs: the built-in one may be several units off.
// By `fma`, as parts/linear.wgsl tells.

fn exp_f32(x: f32) -> f32 {
    let bounded = clamp(x, -87.33654, 88.37626);
    // Not by adding and subtracting a large number, which a compiler may leave out.
    let n = round(bounded * 1.4426950408889634);
    // With one factor in both products a compiler may add their constants, which is off by units of x.
    let whole = i32(n);
    let r = fma(f32(whole), 2.1219444e-4, fma(n, -0.6933594, bounded));
    var p = 1.9875692e-4;
    p = fma(p, r, 1.3982e-3);
    p = fma(p, r, 8.333452e-3);
    p = fma(p, r, 4.1665796e-2);
    p = fma(p, r, 1.6666666e-1);
    p = fma(p, r, 0.5);
    let mantissa = fma(p, r * r, r) + 1.0;
    let exponent = u32(whole + 127) << 23u;
    return select(mantissa * bitcast<f32>(exponent), 0.0, x < -87.33654);
}

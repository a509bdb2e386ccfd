// ln(1 + e^x), and x above 20. ln(1 + t) of t up to 1 is 2 artanh(t / (2 + t)), whose series ends below the last bit.

fn softplus(x: f32) -> f32 {
    let t = exp_f32(-abs(x));
    let s = t / (2.0 + t);
    let square = s * s;
    var p = 0.06666667;
    p = fma(p, square, 0.07692308);
    p = fma(p, square, 0.09090909);
    p = fma(p, square, 0.11111111);
    p = fma(p, square, 0.14285715);
    p = fma(p, square, 0.2);
    p = fma(p, square, 0.33333334);
    let logarithm = 2.0 * fma(p * square, s, s);
    return select(max(x, 0.0) + logarithm, x, x > 20.0);
}

//! The definition of attention against the formula itself in `f64`: softmax without spans, over
//! what the cache has kept. The bound is that of `docs/numerics.md`, "Accuracy of attention".

#![expect(clippy::cast_precision_loss, reason = "lengths are small")]

use setun_ops::{
    CacheElement,
    attention::{HeadCache, SPAN, attention_head},
    cache_values::CacheValues,
    random::Random,
};

/// Unit of rounding of `f32`.
const U: f64 = 1.0 / (1 << 24) as f64;

const ELEMENTS: [CacheElement; 3] = [CacheElement::F32, CacheElement::F16, CacheElement::Int8];

/// Keys and values of one head, as a cache keeps them.
struct Kept {
    keys: CacheValues,
    values: CacheValues,
}

impl HeadCache for Kept {
    fn key(&self, position: usize, out: &mut [f32]) -> f32 {
        self.keys.load(position, out)
    }

    fn value(&self, position: usize, out: &mut [f32]) -> f32 {
        self.values.load(position, out)
    }
}

/// One query over some positions, before and after the cache has rounded them.
struct Case {
    query: Vec<f32>,
    keys: Vec<f32>,   // [positions, head_dim]
    values: Vec<f32>, // [positions, head_dim]
    kept: Kept,
}

impl Case {
    fn new(random: &mut Random, head_dim: usize, positions: usize, element: CacheElement) -> Self {
        let magnitude = random.pick(&[0.1, 1.0, 1.0, 8.0]);
        let query = floats(random, head_dim, magnitude);
        let (keys, values) =
            (floats(random, positions * head_dim, 2.0), floats(random, positions * head_dim, 2.0));
        let keep = |x: &[f32]| {
            let mut kept = empty(element, positions, head_dim);
            x.chunks(head_dim).enumerate().for_each(|(index, x)| kept.store(index, x));
            kept
        };
        let kept = Kept { keys: keep(&keys), values: keep(&values) };
        Self { query, keys, values, kept }
    }

    /// By the definition.
    fn result(&self) -> Vec<f32> {
        let mut y = vec![0.0; self.query.len()];
        attention_head(&self.query, self.positions() - 1, &self.kept, &mut y);
        y
    }

    fn positions(&self) -> usize {
        self.keys.len() / self.query.len()
    }

    /// What the cache has kept, as numbers: keys, and values.
    fn kept(&self) -> [Vec<f64>; 2] {
        let widen = |values: &CacheValues| {
            let mut vector = vec![0.0; self.query.len()];
            let vectors = (0..self.positions()).flat_map(|index| {
                let scale = f64::from(values.load(index, &mut vector));
                vector.iter().map(|&x| f64::from(x) * scale).collect::<Vec<_>>()
            });
            vectors.collect()
        };
        [widen(&self.kept.keys), widen(&self.kept.values)]
    }

    /// What the cache was given.
    fn given(&self) -> [Vec<f64>; 2] {
        [&self.keys, &self.values].map(|x| x.iter().copied().map(f64::from).collect())
    }

    /// The result over the given keys and values, and how far the definition may be from it.
    fn exact(&self, [keys, values]: &[Vec<f64>; 2]) -> Vec<(f64, f64)> {
        let (d, n) = (self.query.len(), self.positions());
        let root = (d as f64).sqrt();
        let products = |key: &[f64]| -> Vec<f64> {
            self.query.iter().zip(key).map(|(&q, k)| f64::from(q) * k / root).collect()
        };
        let products: Vec<Vec<f64>> = keys.chunks(d).map(products).collect();
        let scores: Vec<f64> = products.iter().map(|products| products.iter().sum()).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| libm::exp(score - max)).collect();
        let total: f64 = weights.iter().sum();

        let errors = scores.iter().zip(&products).map(|(score, products)| {
            let magnitude: f64 = products.iter().map(|x| x.abs()).sum();
            let of_score = gamma(d.div_ceil(16) + 10) * magnitude;
            (of_score, (max - score).min(88.0) * U)
        });
        let (of_scores, of_differences) =
            errors.fold((0.0f64, 0.0f64), |(a, b), (x, y)| (a.max(x), b.max(y)));
        // Rounded scores differ by up to two of their errors more.
        let e = ((of_scores + of_differences + 2.0 * U * of_scores).exp() * (1.0 + 2.0 * U)) - 1.0;
        let spans = n.div_ceil(SPAN);
        let above = (1.0 + e) * (1.0 + gamma(SPAN + 2 + spans)) * (1.0 + U);
        let relative = above / ((1.0 - e) * (1.0 - gamma(8 + spans))) - 1.0;

        (0..d)
            .map(|i| {
                let column = || weights.iter().zip(values.iter().skip(i).step_by(d));
                let result: f64 = column().map(|(p, v)| p * v).sum();
                let magnitude: f64 = column().map(|(p, v)| p * v.abs()).sum();
                let most = column().map(|(_, v)| v.abs()).fold(0.0, f64::max);
                let tiny = n as f64 * 2f64.powi(-124) * (most + 1.0);
                (result / total, relative * magnitude / total + tiny)
            })
            .collect()
    }

    /// The largest share of its bound that the error of an element takes.
    fn share(&self, over: &[Vec<f64>; 2]) -> f64 {
        let pairs = self.result().into_iter().zip(self.exact(over));
        let shares = pairs.map(|(found, (exact, bound))| {
            assert!(found.is_finite());
            (f64::from(found) - exact).abs() / bound
        });
        shares.fold(0.0, f64::max)
    }
}

/// `n u / (1 − n u)`
fn gamma(roundings: usize) -> f64 {
    let nu = roundings as f64 * U;
    nu / (1.0 - nu)
}

/// Multiples of 2⁻²⁴ of the magnitude, so that no product underflows.
fn floats(random: &mut Random, len: usize, magnitude: f32) -> Vec<f32> {
    (0..len).map(|_| magnitude * (random.unit() + random.unit() - 1.0)).collect()
}

fn empty(element: CacheElement, vectors: usize, head_dim: usize) -> CacheValues {
    match element {
        CacheElement::F32 => CacheValues::F32(vec![0.0; vectors * head_dim]),
        CacheElement::F16 => CacheValues::F16(vec![half::f16::ZERO; vectors * head_dim]),
        CacheElement::Int8 => {
            CacheValues::Int8 { codes: vec![0; vectors * head_dim], scales: vec![0.0; vectors] }
        }
    }
}

/// Lengths around spans and lanes, widths of heads; an interpreter has patience for the least.
fn sizes() -> (&'static [usize], &'static [usize]) {
    if cfg!(miri) {
        return (&[1, 17], &[1, 7, 16]);
    }
    let lengths = &[1, 2, 15, 16, 17, 63, 64, 65, 127, 129, 200, 449, 512, 700];
    (lengths, &[1, 2, 7, 10, 16, 33, 64, 80, 96, 127, 128])
}

#[test]
fn the_error_is_within_its_bound() {
    let mut worst = [0.0f64; 3];
    let random = &mut Random::new(1);
    let (lengths, widths) = sizes();
    for &positions in lengths {
        for &head_dim in widths {
            for (element, worst) in ELEMENTS.into_iter().zip(&mut worst) {
                let case = Case::new(random, head_dim, positions, element);
                let share = case.share(&case.kept());
                assert!(share <= 1.0, "{share} of the bound: {positions}, {head_dim}, {element:?}");
                *worst = worst.max(share);
            }
        }
    }
    // Or the bound would say nothing; few sizes reach less of it.
    assert!(cfg!(miri) || worst.iter().all(|&share| share > 0.01), "{worst:?}");
}

/// The bound is narrow enough to say what was rounded from what was not.
#[test]
fn values_before_rounding_are_beyond_the_bound() {
    let random = &mut Random::new(2);
    for element in [CacheElement::F16, CacheElement::Int8] {
        let case = Case::new(random, 64, 65, element);
        assert!(case.share(&case.given()) > 1.0, "{element:?}");
    }
}

//! Weights that go through an image.

use half::{bf16, f16};
use proptest::{collection::vec, prelude::*};
use setun_ops::{
    Backend, Usage,
    aligned::{Aligned, SharedBytes},
    image::WeightImage,
    random::Random,
};

use super::*;
use crate::{CpuBackend, CpuOptions};

/// As a file gives it back: every part in memory that others own, at a cache line.
fn mapped(image: &WeightBytes<'_>) -> MappedWeight {
    let share = |part: &Cow<'_, [u8]>| SharedBytes::new(Aligned::from(part.to_vec()));
    WeightImage { numbers: image.numbers.clone(), parts: image.parts.iter().map(share).collect() }
}

fn tables(random: &mut Random) -> Vec<DenseMatrix> {
    let (rows, columns) = (21, 130);
    let floats = random.floats(rows * columns);
    let f16s = floats.iter().map(|&x| f16::from_f32(x)).collect();
    let bf16s = floats.iter().map(|&x| bf16::from_f32(x)).collect();
    let ternary = random.ternary_with(rows, columns, Scales::Rows(vec![0.5; rows]));
    let values = [
        DenseValues::F32(floats.into()),
        DenseValues::F16(f16s),
        DenseValues::Bf16(bf16s),
        DenseValues::Ternary(ternary),
    ];
    let mut tables: Vec<_> =
        values.map(|values| DenseMatrix::new(rows, columns, values).unwrap()).into();
    tables.push(tables[0].to_int8_rows().unwrap());
    tables
}

fn weights(random: &mut Random) -> Vec<(WeightData, Usage)> {
    let groups = Scales::ColumnGroups { columns: 32, values: vec![0.25; 5 * 5] };
    let scales = [Scales::Tensor(0.5), Scales::Rows(vec![1.0, 2.0, 3.0, 4.0, 5.0]), groups];
    let mut weights = vec![];
    for scales in scales {
        for usage in [Usage::General, Usage::SparseInput] {
            let matrix = random.ternary_with(5, 130, scales.clone());
            weights.push((WeightData::Ternary(matrix), usage));
        }
    }
    weights.push((WeightData::Vector(vec![1.0, -2.5]), Usage::General));
    let rope = RopeTable::new(7, &[1.0, 0.1]).unwrap();
    weights.push((WeightData::Rope(rope), Usage::General));
    weights
        .extend(tables(random).into_iter().map(|table| (WeightData::Dense(table), Usage::General)));
    weights
}

fn backend() -> CpuBackend {
    CpuBackend::new(CpuOptions { threads: Some(1), ..CpuOptions::default() }).unwrap()
}

/// Every kind of weight, with and without a screen, where it can have one.
fn uploaded(backend: &mut CpuBackend) -> Vec<(CpuWeight, Usage, usize)> {
    let mut all = vec![];
    for (data, usage) in weights(&mut Random::new(3)) {
        let bytes = data.bytes();
        for screened in [false, true] {
            let weight = backend.upload(data.clone(), usage).unwrap();
            if screened {
                backend.make_screen(&weight);
            }
            all.push((weight, usage, bytes));
        }
    }
    all
}

#[test]
fn a_weight_of_an_image_is_the_one_that_was_written() {
    let (mut backend, mut screens) = (backend(), 0);
    for (weight, usage, bytes) in uploaded(&mut backend) {
        let image = backend.image(&weight).unwrap();
        let adopted = backend.adopt(mapped(&image), usage).unwrap();
        screens += usize::from(backend.bytes_beside(&weight) > 0);
        assert_eq!((adopted.spec, adopted.bytes), (weight.spec(), bytes));
        assert_eq!(backend.bytes_beside(&adopted.weight), backend.bytes_beside(&weight));
        let again = backend.image(&adopted.weight).unwrap();
        assert_eq!(again.numbers, image.numbers);
        assert!(again.parts == image.parts, "{:?}", weight.spec());
    }
    assert_eq!(screens, 4, "one of each type of floats, one of codes");
}

#[test]
fn an_image_of_other_sizes_is_refused() {
    let mut backend = backend();
    for (weight, usage, _) in uploaded(&mut backend) {
        let image = backend.image(&weight).unwrap();
        let vector = image.numbers[0] == VECTOR;
        let mut cut = |change: &dyn Fn(&mut MappedWeight)| {
            let mut image = mapped(&image);
            change(&mut image);
            backend.adopt(image, usage)
        };
        for number in 0..image.numbers.len() {
            let largest = cut(&|image| image.numbers[number] = u64::MAX);
            let is_norm = matches!(weight.storage(),
                WeightStorage::Plain { data: WeightData::Dense(table), screen }
                    if !matches!(table.values(), DenseValues::Ternary(_))
                        && matches!(screen.get(), Some(Some(_))));
            // A norm, and the columns of a group that no scales have, are no sizes.
            let last = number + 1 == image.numbers.len();
            let group = image.numbers[0] <= COLUMNS && number == 4 && image.numbers[3] < 2
                || image.numbers[0] == DENSE && number == 8;
            let free = group || is_norm && last;
            assert!(free || largest.is_err(), "{:?}, number {number}", weight.spec());
        }
        assert!(cut(&|image| image.numbers.push(0)).is_err());
        assert!(cut(&|image| image.numbers.truncate(0)).is_err());
        assert!(cut(&|image| image.parts.push(SharedBytes::new(vec![]))).is_err());
        for part in 0..image.parts.len() {
            assert!(cut(&|image| drop(image.parts.remove(part))).is_err());
            let shorter = cut(&|image| {
                let bytes = image.parts[part].len() - 4;
                image.parts[part] = image.parts[part].slice(0..bytes).unwrap();
            });
            // Any number of floats is a vector.
            assert!(vector || shorter.is_err(), "{:?}, part {part}", weight.spec());
        }
    }
}

/// Exact logits of a screen's candidates are those of floats.
#[test]
fn a_screen_of_another_type_than_floats_is_refused() {
    let mut backend = backend();
    let tables = tables(&mut Random::new(5));
    let mut image = |table: &DenseMatrix, screened: bool| {
        let weight = backend.upload(WeightData::Dense(table.clone()), Usage::General).unwrap();
        if screened {
            backend.make_screen(&weight);
        }
        mapped(&backend.image(&weight).unwrap())
    };
    let screened = image(&tables[0], true);
    let others = [image(&tables[3], false), image(&tables[4], false)];
    for mut other in others {
        *other.numbers.last_mut().unwrap() = 2;
        other.numbers.push(*screened.numbers.last().unwrap());
        other.parts.extend_from_slice(&screened.parts[1..]);
        assert!(backend.adopt(other, Usage::General).is_err());
    }
    assert!(backend.adopt(screened, Usage::General).is_ok());
}

#[test]
fn columns_are_for_sparse_inputs_alone() {
    let mut backend = backend();
    let matrix = Random::new(1).ternary_with(5, 130, Scales::Tensor(0.5));
    let weight = backend.upload(WeightData::Ternary(matrix), Usage::SparseInput).unwrap();
    let image = mapped(&backend.image(&weight).unwrap());
    assert!(backend.adopt(image.clone(), Usage::General).is_err());
    assert!(backend.adopt(image, Usage::SparseInput).is_ok());
}

proptest! {
    /// Numbers of any size with parts of few bytes are refused, or are weights of these bytes.
    #[test]
    fn any_numbers_are_safe(
        kind in 0..6_u64,
        numbers in vec(prop_oneof![0..5_u64, any::<u64>(), Just(1 << 24), Just(132_000)], 0..9),
        parts in vec(0..20_usize, 0..5),
    ) {
        let numbers = std::iter::once(kind).chain(numbers).collect();
        let part = |words: &usize| SharedBytes::new(Aligned::from(vec![0; 4 * words]));
        let image = WeightImage { numbers, parts: parts.iter().map(part).collect() };
        let mut backend = backend();
        for usage in [Usage::General, Usage::SparseInput] {
            if let Ok(adopted) = backend.adopt(image.clone(), usage) {
                prop_assert_eq!(adopted.weight.spec(), adopted.spec);
                prop_assert!(backend.image(&adopted.weight).is_some());
            }
        }
    }
}

//! Weights as numbers and bytes, in the form in which a backend keeps them: what a file needs to
//! hold for other processes to map it.

use std::borrow::Cow;

use crate::{
    aligned::{Aligned, SharedBytes},
    error::OpsError,
    weight::WeightSpec,
};

/// A weight as its backend keeps it. What its numbers and parts mean is the backend's affair.
#[derive(Clone, Debug)]
pub struct WeightImage<P> {
    /// Sizes and the like.
    pub numbers: Vec<u64>,
    /// Its values.
    pub parts: Vec<P>,
}

impl<P> WeightImage<P> {
    /// The same with other parts; none where one of them is none.
    pub fn try_map<Q>(self, part: impl FnMut(P) -> Option<Q>) -> Option<WeightImage<Q>> {
        let parts = self.parts.into_iter().map(part).collect::<Option<_>>()?;
        Some(WeightImage { numbers: self.numbers, parts })
    }
}

/// A weight on its way out of a backend.
pub type WeightBytes<'a> = WeightImage<Cow<'a, [u8]>>;

/// A weight on its way into a backend, whose parts begin with a cache line each.
pub type MappedWeight = WeightImage<SharedBytes>;

/// A weight that a backend has taken from an image.
#[derive(Clone, Debug)]
pub struct Adopted<W> {
    /// The weight.
    pub weight: W,
    /// Its kind and shape.
    pub spec: WeightSpec,
    /// Bytes of its values, as [`WeightData::bytes`](crate::WeightData::bytes) counts them.
    pub bytes: usize,
}

/// The numbers and parts of an image, taken one after the other.
#[derive(Debug)]
pub struct ImageFields {
    numbers: std::vec::IntoIter<u64>,
    parts: std::vec::IntoIter<SharedBytes>,
}

impl From<MappedWeight> for ImageFields {
    fn from(image: MappedWeight) -> Self {
        Self { numbers: image.numbers.into_iter(), parts: image.parts.into_iter() }
    }
}

impl ImageFields {
    /// The next number.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn number(&mut self) -> Result<u64, OpsError> {
        self.numbers.next().ok_or(OpsError::Image { what: "a number is missing" })
    }

    /// The next number, as a size.
    ///
    /// # Errors
    ///
    /// If there is none, or nothing can be so large.
    pub fn size(&mut self) -> Result<usize, OpsError> {
        let what = "a size is too large";
        usize::try_from(self.number()?).map_err(|_| OpsError::Image { what })
    }

    /// The elements of the next part, which stay where they are.
    ///
    /// # Errors
    ///
    /// If there is none, or it is no whole number of elements.
    pub fn elements<T>(&mut self) -> Result<Aligned<T>, OpsError>
    where
        T: bytemuck::AnyBitPattern + Default,
    {
        let part = self.parts.next().ok_or(OpsError::Image { what: "a part is missing" })?;
        part.elements().ok_or(OpsError::Image { what: "a part is cut or not aligned" })
    }

    /// The floats of the next part, copied.
    ///
    /// # Errors
    ///
    /// As [`elements`](Self::elements), and if there is no memory for them.
    pub fn floats(&mut self) -> Result<Vec<f32>, OpsError> {
        let floats = self.elements::<f32>()?;
        let mut copy = vec![];
        let no_memory =
            |_| OpsError::OutOfMemory { what: "floats of an image", bytes: size_of_val(&*floats) };
        copy.try_reserve_exact(floats.len()).map_err(no_memory)?;
        copy.extend_from_slice(&floats);
        Ok(copy)
    }

    /// Nothing may be left.
    ///
    /// # Errors
    ///
    /// If something is.
    pub fn end(mut self) -> Result<(), OpsError> {
        match (self.numbers.next(), self.parts.next()) {
            (None, None) => Ok(()),
            _ => Err(OpsError::Image { what: "more follows" }),
        }
    }
}

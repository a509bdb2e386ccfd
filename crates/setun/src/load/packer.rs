//! Packing a tensor while the next one is read.
//!
//! Natively a thread packs. It takes a tensor only when it has done with the one before, so that
//! no more than two wait in their stored form; an error comes with the tensor that follows, or
//! at the end. In WebAssembly tensors are packed as they come.

use setun_checkpoint::Tensor;
use setun_model::{Weights, WeightsBuilder};

use crate::error::Error;

pub(super) use packing::Packer;

#[cfg(not(target_family = "wasm"))]
mod packing {
    use std::{
        sync::mpsc::{Receiver, SyncSender, sync_channel},
        thread::{Builder, JoinHandle},
    };

    use setun_model::ModelError;

    use super::{Error, Tensor, Weights, WeightsBuilder};

    /// See the [module](super). Once it has failed, it takes nothing and has no weights.
    #[derive(Debug)]
    pub(in crate::load) struct Packer(Option<Running>);

    #[derive(Debug)]
    struct Running {
        tensors: SyncSender<Tensor>,
        thread: JoinHandle<Result<WeightsBuilder, ModelError>>,
    }

    impl Packer {
        pub(in crate::load) fn new(builder: WeightsBuilder) -> Result<Self, Error> {
            let (tensors, receiver) = sync_channel(0);
            let thread = Builder::new()
                .name("setun-packer".into())
                .spawn(|| pack(builder, receiver))
                .map_err(Error::Thread)?;
            Ok(Self(Some(Running { tensors, thread })))
        }

        pub(in crate::load) fn add(&mut self, tensor: Tensor) -> Result<(), Error> {
            match &self.0 {
                Some(running) if running.tensors.send(tensor).is_err() => self.end().map(drop),
                _ => Ok(()),
            }
        }

        /// The weights; none after an error that was returned before.
        pub(in crate::load) fn finish(mut self) -> Result<Option<Weights>, Error> {
            Ok(self.end()?.map(WeightsBuilder::finish).transpose()?)
        }

        fn end(&mut self) -> Result<Option<WeightsBuilder>, Error> {
            let Some(Running { tensors, thread }) = self.0.take() else { return Ok(None) };
            drop(tensors);
            match thread.join() {
                Ok(builder) => Ok(Some(builder?)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "an end of a channel is dropped at the end")]
    fn pack(
        mut builder: WeightsBuilder,
        tensors: Receiver<Tensor>,
    ) -> Result<WeightsBuilder, ModelError> {
        for tensor in tensors.iter() {
            builder.add(tensor)?;
        }
        Ok(builder)
    }
}

#[cfg(target_family = "wasm")]
mod packing {
    use super::{Error, Tensor, Weights, WeightsBuilder};

    /// See the [module](super).
    #[derive(Debug)]
    pub(in crate::load) struct Packer(WeightsBuilder);

    impl Packer {
        #[expect(clippy::unnecessary_wraps, reason = "natively there may be no thread")]
        pub(in crate::load) fn new(builder: WeightsBuilder) -> Result<Self, Error> {
            Ok(Self(builder))
        }

        pub(in crate::load) fn add(&mut self, tensor: Tensor) -> Result<(), Error> {
            Ok(self.0.add(tensor)?)
        }

        pub(in crate::load) fn finish(self) -> Result<Option<Weights>, Error> {
            Ok(Some(self.0.finish()?))
        }
    }
}

#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use setun_checkpoint::{Answer, Reader, Source};

    use super::*;

    /// All tensors of the embedded model, and a builder for them.
    fn embedded() -> (WeightsBuilder, Vec<Tensor>) {
        const MODEL: &[u8] = include_bytes!("../../embedded/stories.safetensors");
        let mut reader = Reader::new(Source::File("stories.safetensors".into()));
        let mut tensors = vec![];
        while let Some(want) = reader.want() {
            let range = want.range.expect("all is in one file");
            let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap());
            tensors.extend(reader.give(Answer::Bytes(&MODEL[start..end])).unwrap());
        }
        let (config, infos) = (reader.config().unwrap(), reader.tensors().unwrap());
        (WeightsBuilder::new(config, infos, 64).unwrap(), tensors)
    }

    #[test]
    fn an_error_comes_with_the_next_tensor_and_once() {
        let (builder, mut tensors) = embedded();
        let bad = tensors.iter().position(|tensor| tensor.info.name.ends_with("norm.weight"));
        let bad = bad.expect("a vector");
        tensors[bad].info.shape = vec![];
        let mut packer = Packer::new(builder).unwrap();
        let mut errors = vec![];
        for (index, tensor) in tensors.into_iter().enumerate() {
            if let Err(error) = packer.add(tensor) {
                errors.push((index, error.to_string()));
            }
        }
        let [(index, error)] = &errors[..] else { panic!("one error, not {errors:?}") };
        assert_eq!(*index, bad + 1);
        assert!(error.contains("norm.weight"), "{error}");
        assert!(packer.finish().unwrap().is_none());
    }

    #[test]
    fn an_error_of_the_last_tensor_comes_at_the_end() {
        let (builder, mut tensors) = embedded();
        tensors.sort_by_key(|tensor| tensor.info.name.ends_with("norm.weight"));
        tensors.last_mut().expect("tensors").info.shape = vec![];
        let mut packer = Packer::new(builder).unwrap();
        for tensor in tensors {
            packer.add(tensor).unwrap();
        }
        assert!(packer.finish().is_err());
    }

    #[test]
    fn weights_are_those_of_a_builder_alone() {
        let (mut builder, tensors) = embedded();
        let mut packer = Packer::new(embedded().0).unwrap();
        for tensor in tensors {
            packer.add(tensor.clone()).unwrap();
            builder.add(tensor).unwrap();
        }
        let found = packer.finish().unwrap().expect("no error");
        assert_eq!(found.data, builder.finish().unwrap().data);
    }
}

//! The formats that models are written in.

use setun_checkpoint::{
    CheckpointError, Dtype, Warning,
    container::write as container,
    gguf::write as gguf,
    outline::{Content, Outline},
    write::{HfWriter, Piece, Sink, Writer},
};

pub use setun_checkpoint::container::write::{Options as ContainerOptions, TableType};

/// A format that models are written in.
#[derive(Clone, Debug)]
pub enum Format {
    /// setun's own container.
    Setun(Box<ContainerOptions>),
    /// A folder in Hugging Face's layout, packed.
    Hf,
    /// A GGUF file whose linear layers are of this type: `I2_S`, `TQ1_0` or `TQ2_0`.
    Gguf(Dtype),
}

impl Format {
    /// A writer of the model. `file` is the name of the file, where the format has one; `scale`
    /// is that of a matrix as far as it is known before its codes.
    pub(super) fn writer(
        &self,
        outline: &Outline,
        file: &str,
        scale: impl Fn(&str) -> Option<f32>,
    ) -> Result<Box<dyn Writer + Send>, CheckpointError> {
        Ok(match self {
            Self::Setun(options) => Box::new(container::plan(file, outline, options)?),
            Self::Hf => Box::new(HfWriter::new(outline)?),
            Self::Gguf(dtype) => {
                let beside = |name: &str| scale(name).is_none_or(gguf::needs_scale_beside);
                let plan = gguf::plan(outline, *dtype, beside)?;
                Box::new(GgufWriter { plan, file: file.to_owned() })
            }
        })
    }
}

struct GgufWriter {
    plan: gguf::Plan,
    file: String,
}

impl Writer for GgufWriter {
    fn begin(&mut self, write: &mut Sink<'_>) -> Result<(), CheckpointError> {
        let bytes = std::mem::take(&mut self.plan.header);
        write(Piece { file: self.file.clone(), offset: 0, bytes });
        Ok(())
    }

    fn put(
        &mut self,
        name: &str,
        content: Content,
        write: &mut Sink<'_>,
    ) -> Result<(), CheckpointError> {
        self.plan.encode(name, content, &mut |offset, bytes| {
            write(Piece { file: self.file.clone(), offset, bytes });
        })
    }

    fn end(&mut self, _: &mut Sink<'_>) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn warnings(&self) -> Vec<Warning> {
        self.plan.warnings.clone()
    }
}

//! The formats that models are written in.

use setun_checkpoint::{
    CheckpointError, Dtype, Warning,
    container::write as container,
    gguf::write as gguf,
    outline::{Content, Outline},
    write::{HfWriter, Piece, Writer},
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
            Self::Setun(options) => {
                Box::new(SetunWriter { writer: Some(container::plan(file, outline, options)?) })
            }
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
    fn begin(&mut self) -> Result<Vec<Piece>, CheckpointError> {
        let bytes = std::mem::take(&mut self.plan.header);
        Ok(vec![Piece { file: self.file.clone(), offset: 0, bytes }])
    }

    fn put(&mut self, name: &str, content: Content) -> Result<Vec<Piece>, CheckpointError> {
        let bytes = self.plan.encode(name, content)?;
        let place = self.plan.places.iter().find(|place| place.name == name);
        let offset = place.map_or(0, |place| place.range.start);
        Ok(vec![Piece { file: self.file.clone(), offset, bytes }])
    }

    fn end(&mut self) -> Result<Vec<Piece>, CheckpointError> {
        Ok(vec![])
    }

    fn warnings(&self) -> Vec<Warning> {
        self.plan.warnings.clone()
    }
}

struct SetunWriter {
    writer: Option<container::Writer>, // none at its end
}

impl SetunWriter {
    /// The pieces that `work` writes.
    fn pieces(
        writer: &mut container::Writer,
        work: impl FnOnce(&mut container::Writer, Sink<'_>) -> Result<(), CheckpointError>,
    ) -> Result<Vec<Piece>, CheckpointError> {
        let files = writer.files().to_vec();
        let mut pieces = vec![];
        work(writer, &mut |piece: container::Piece<'_>| {
            let bytes = piece.bytes.to_vec();
            pieces.push(Piece { file: files[piece.file].clone(), offset: piece.offset, bytes });
            Ok(())
        })?;
        Ok(pieces)
    }
}

type Sink<'a> = &'a mut dyn FnMut(container::Piece<'_>) -> Result<(), CheckpointError>;

impl Writer for SetunWriter {
    fn begin(&mut self) -> Result<Vec<Piece>, CheckpointError> {
        let Some(writer) = &mut self.writer else { return Ok(vec![]) };
        Self::pieces(writer, container::Writer::begin)
    }

    fn put(&mut self, name: &str, content: Content) -> Result<Vec<Piece>, CheckpointError> {
        let Some(writer) = &mut self.writer else { return Ok(vec![]) };
        Self::pieces(writer, |writer, sink| writer.add(name, content, sink))
    }

    fn end(&mut self) -> Result<Vec<Piece>, CheckpointError> {
        let Some(writer) = self.writer.take() else { return Ok(vec![]) };
        let files = writer.files().to_vec();
        let mut pieces = vec![];
        writer.finish(&mut |piece: container::Piece<'_>| {
            let bytes = piece.bytes.to_vec();
            pieces.push(Piece { file: files[piece.file].clone(), offset: piece.offset, bytes });
            Ok::<_, CheckpointError>(())
        })?;
        Ok(pieces)
    }
}

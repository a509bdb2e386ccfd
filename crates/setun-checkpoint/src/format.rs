//! Detection of a file's format by its first bytes.

use crate::{
    container::{ContainerHeaderReader, is_container},
    error::CheckpointError,
    gguf::{self, header_reader::GgufHeaderReader},
    hf::HfHeaderReader,
    readers::{HeaderContents, HeaderReader},
    source::{Options, ReadRequest, Source},
    tensor_list::TensorListReader,
};

/// The header reader of a source.
pub(crate) fn header_reader(source: Source, options: Options) -> Box<dyn HeaderReader> {
    match source {
        Source::Folder => Box::new(HfHeaderReader::folder()),
        Source::File(file) => Box::new(FormatDetector { file, options }),
        Source::Tensors(list) => Box::new(TensorListReader::new(list)),
    }
}

/// Bytes that distinguish formats.
const MAGIC_BYTES: u64 = 8;

/// Looks at the first bytes of a file, and leaves it to the header reader of its format.
#[derive(Debug)]
struct FormatDetector {
    file: String,
    options: Options,
}

impl HeaderReader for FormatDetector {
    fn next_read(&self) -> Option<ReadRequest> {
        Some(ReadRequest { file: self.file.clone(), range: Some(0..MAGIC_BYTES), required: true })
    }

    fn accept(
        &mut self,
        bytes: Option<&[u8]>,
        found: &mut HeaderContents,
    ) -> Result<Option<Box<dyn HeaderReader>>, CheckpointError> {
        let file = std::mem::take(&mut self.file);
        refuse_pickle(&file, bytes.unwrap_or_default())?;
        if let Some(bytes) = bytes.filter(|bytes| bytes.starts_with(gguf::MAGIC)) {
            return Ok(Some(Box::new(GgufHeaderReader::new(&file, bytes, self.options))));
        }
        if let Some(first) = bytes.filter(|bytes| is_container(bytes)) {
            return Ok(Some(Box::new(ContainerHeaderReader::new(file, first)?)));
        }
        #[cfg(feature = "onnx")]
        if crate::onnx::is_onnx(&file, bytes.unwrap_or_default()) {
            return Ok(Some(Box::new(crate::onnx::OnnxHeaderReader::new(&file))));
        }
        let mut header = HfHeaderReader::single_file(file);
        header.accept(bytes, found)?;
        Ok(Some(Box::new(header)))
    }
}

/// Files of `torch.save` are programs; nothing here runs them.
fn refuse_pickle(file: &str, bytes: &[u8]) -> Result<(), CheckpointError> {
    const ZIP: &[u8] = b"PK\x03\x04";
    const PICKLE: &[u8] = b"\x80\x02";
    if bytes.starts_with(ZIP) || bytes.starts_with(PICKLE) {
        return Err(CheckpointError::Pickle { file: file.to_owned() });
    }
    Ok(())
}

//! Note in the lock of a destination: what its holder writes.

use serde::{Deserialize, Serialize};

/// What the holder of a lock writes.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// In the names of its parts.
    pub(super) id: String,
    /// Names that it gives to its files.
    pub(super) names: Vec<String>,
}

impl Note {
    /// As it is written.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() // texts alone always can
    }

    /// Reads a note; none where the file is something else. One that was not written to its end,
    /// or that a power failure has made zeros, says nothing.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        const BEGIN: &[u8] = b"{\"id\":";
        // What follows is the rest of a longer note.
        let mut notes = serde_json::Deserializer::from_slice(text).into_iter::<Self>();
        if let Some(Ok(note)) = notes.next() {
            return Some(note);
        }
        let is_broken_off = text.iter().all(|byte| *byte == 0)
            || BEGIN.starts_with(text)
            || text.starts_with(BEGIN);
        is_broken_off.then(Self::default)
    }
}

/// End of the names of the parts of the process with this id.
pub(super) fn ending(id: &str) -> String {
    format!(".{id}.part")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_however_its_writing_ended() {
        let note = Note { id: "a-1".into(), names: vec!["weights".into(), "config".into()] };
        let text = note.text().into_bytes();
        assert_eq!(Note::parse(&text), Some(Note { id: "a-1".into(), names: note.names.clone() }));
        // Over a longer one that is not cut off yet.
        let longer = [&text[..], b"ights\",\"config\"]}"].concat();
        assert_eq!(Note::parse(&longer), Some(note));
        for end in 0..text.len() {
            assert_eq!(Note::parse(&text[..end]), Some(Note::default()), "{end}");
        }
        assert_eq!(Note::parse(&[0; 40]), Some(Note::default()));
        for other in ["[1]", "mine", "{\"name\":1}", "\u{0}x", "lock\n"] {
            assert_eq!(Note::parse(other.as_bytes()), None, "{other}");
        }
    }
}

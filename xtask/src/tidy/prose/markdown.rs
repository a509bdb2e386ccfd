//! A Markdown document as its reader sees it: words, cells, lines of prose.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Characters of a cell of a table, and of a line outside of tables and code blocks.
pub(super) const MAX_CELL: usize = 100;
pub(super) const MAX_LINE: usize = 200;

/// What is checked of a document; lines count from 1.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) words: usize,
    /// Lines of cells that are too wide, and their characters.
    pub(super) wide_cells: Vec<(usize, usize)>,
    /// Lines that are too wide, and their characters.
    pub(super) wide_lines: Vec<(usize, usize)>,
    /// Lines outside of code blocks.
    pub(super) prose: Vec<(usize, String)>,
}

pub(super) fn read(text: &str) -> Document {
    let mut document = Document::default();
    let line_of = |offset: usize| text[..offset].matches('\n').count() + 1;
    let (mut tables, mut code) = (vec![], vec![]);
    let mut cell: Option<usize> = None;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Table(_)) => tables.push(lines(text, &range)),
            Event::Start(Tag::CodeBlock(_)) => code.push(lines(text, &range)),
            Event::Start(Tag::TableCell) => cell = Some(0),
            Event::End(TagEnd::TableCell) => {
                if let Some(width) = cell.take().filter(|width| *width > MAX_CELL) {
                    document.wide_cells.push((line_of(range.start), width));
                }
            }
            Event::Text(text) | Event::Code(text)
                if !code.iter().any(|lines| lines.contains(&line_of(range.start))) =>
            {
                document.words += text.split_whitespace().count();
                if let Some(width) = &mut cell {
                    *width += text.chars().count();
                }
            }
            _ => {}
        }
    }
    for (at, line) in text.lines().enumerate() {
        let is_in = |blocks: &[Range<usize>]| blocks.iter().any(|lines| lines.contains(&(at + 1)));
        if is_in(&code) {
            continue;
        }
        let width = line.chars().count();
        if width > MAX_LINE && !is_in(&tables) {
            document.wide_lines.push((at + 1, width));
        }
        document.prose.push((at + 1, line.to_owned()));
    }
    document
}

/// The lines that a range of bytes touches.
fn lines(text: &str, range: &Range<usize>) -> Range<usize> {
    let first = text[..range.start].matches('\n').count() + 1;
    first..first + text[range.clone()].trim_end().matches('\n').count() + 1
}

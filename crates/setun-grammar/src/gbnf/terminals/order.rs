//! Which terminals may follow each other.

use super::bits::Bits;
use super::plan::{Piece, Plan, Sequences};
use super::work::Work;

/// Terminals that may come first, and those that may follow each.
pub(super) struct Order {
    pub(super) first: Bits,
    pub(super) next: Vec<Bits>,
}

impl Order {
    /// That of a plan whose terminals may be empty where it is said.
    pub(super) fn new(
        plan: &Plan<'_>,
        root: usize,
        is_nullable: Vec<bool>,
        work: &mut Work,
    ) -> Self {
        let none = Bits::none(is_nullable.len());
        let empty = Part { first: none.clone(), last: none.clone(), is_nullable: false };
        let mut search = Search {
            rules: vec![empty.clone(); plan.rules.len()],
            next: vec![none; is_nullable.len()],
            is_nullable,
            empty,
            work,
        };
        // What rules begin and end with depends on each other. Meanwhile `next` grows as well,
        // and the last pass completes it.
        while search.pass(plan) && search.work.is_left() {}
        Self { first: search.rules[root].first.clone(), next: search.next }
    }
}

/// What a part of a rule begins and ends with.
#[derive(Clone, PartialEq, Eq)]
struct Part {
    first: Bits,
    last: Bits,
    is_nullable: bool,
}

struct Search<'a> {
    rules: Vec<Part>,
    next: Vec<Bits>,
    is_nullable: Vec<bool>,
    empty: Part,
    work: &'a mut Work,
}

impl Search<'_> {
    /// Looks at all rules. Whether something was new.
    fn pass(&mut self, plan: &Plan<'_>) -> bool {
        let mut is_new = false;
        for (index, rule) in plan.rules.iter().enumerate().rev() {
            let Some(sequences) = rule else { continue };
            let part = self.sequences(sequences);
            is_new |= part != self.rules[index];
            self.rules[index] = part;
        }
        is_new
    }

    fn sequences(&mut self, sequences: &Sequences) -> Part {
        let mut whole = self.empty.clone();
        for pieces in sequences {
            let mut part = Part { is_nullable: true, ..self.empty.clone() };
            for piece in pieces {
                let next = self.piece(piece);
                self.link(&part.last, &next.first);
                if part.is_nullable {
                    part.first.insert_all(&next.first);
                }
                if next.is_nullable {
                    part.last.insert_all(&next.last);
                } else {
                    part.last = next.last;
                }
                part.is_nullable &= next.is_nullable;
            }
            whole.first.insert_all(&part.first);
            whole.last.insert_all(&part.last);
            whole.is_nullable |= part.is_nullable;
        }
        whole
    }

    fn piece(&mut self, piece: &Piece) -> Part {
        self.work.spend(4 * self.empty.first.words());
        match piece {
            Piece::Rule(index) => self.rules[*index].clone(),
            Piece::Terminal(index) => {
                let mut part = self.empty.clone();
                part.first.insert(*index);
                part.last.insert(*index);
                part.is_nullable = self.is_nullable[*index];
                part
            }
            Piece::Group { most: Some(0), .. } => Part { is_nullable: true, ..self.empty.clone() },
            Piece::Group { inner, least, most } => {
                let mut part = self.sequences(inner);
                if *most != Some(1) {
                    self.link(&part.last, &part.first);
                }
                part.is_nullable |= *least == 0;
                part
            }
        }
    }

    fn link(&mut self, last: &Bits, first: &Bits) {
        for terminal in last.iter() {
            self.work.spend(first.words());
            self.next[terminal].insert_all(first);
        }
    }
}

//! Automata of terminals: one position for each character that is written in one.

use std::collections::BTreeSet;

use super::super::parse::{Alternatives, Element, Item};
use super::Source;
use super::alphabet::{Alphabet, Set};
use super::plan::Terminal;
use super::work::Work;

/// The most positions, and visits of elements, of a terminal.
const MAX_POSITIONS: usize = 1_000;

/// A position follows another where a character of it may follow one of the other.
pub(super) struct Automaton {
    positions: Vec<Position>,
    first: Vec<usize>,
    pub(super) is_nullable: bool,
}

pub(super) struct Position {
    pub(super) characters: Set,
    /// The place of the item that it is of, in the terminal.
    pub(super) item: usize,
    next: Vec<usize>,
    is_last: bool,
}

/// What two terminals that begin at one place have in common.
#[derive(Clone, Default)]
pub(super) struct Meeting {
    /// A text is of both.
    pub(super) have_common_text: bool,
    /// Positions of the second that may follow a text of the first.
    pub(super) continuing: Vec<usize>,
}

impl Automaton {
    /// That of a terminal; `None` if it is too large, has no character, or its deterministic form
    /// would be much larger than its text.
    pub(super) fn new(
        terminal: &Terminal<'_>,
        source: &Source<'_>,
        work: &mut Work,
    ) -> Option<Self> {
        let mut builder = Builder { source, positions: Vec::new(), item: 0, visits: 0, edges: 0 };
        let whole = match terminal {
            Terminal::Character(character) => {
                builder.position(source.alphabet.of_character(*character))
            }
            Terminal::Class(class) => builder.position(source.alphabet.of_class(class)),
            Terminal::Items(items) => builder.items(items),
        };
        work.spend(builder.visits * 8 + builder.edges);
        let whole = whole?;
        let mut positions = builder.positions;
        for &last in &whole.last {
            positions[last].is_last = true;
        }
        for position in &mut positions {
            position.next.sort_unstable();
            position.next.dedup();
        }
        let automaton = Self { positions, first: whole.first, is_nullable: whole.is_nullable };
        let is_good = !automaton.first.is_empty() && automaton.stays_small(&source.alphabet, work);
        is_good.then_some(automaton)
    }

    pub(super) fn position(&self, index: usize) -> &Position {
        &self.positions[index]
    }

    /// The characters that it begins with.
    pub(super) fn first(&self) -> Set {
        self.union(&self.first)
    }

    /// What it has in common with another.
    pub(super) fn meeting(&self, other: &Self, work: &mut Work) -> Meeting {
        let mut meeting = Meeting::default();
        if !self.first().meets(other.first()) {
            return meeting;
        }
        let width = other.positions.len();
        work.spend(self.positions.len() * width / 64);
        let mut seen = vec![false; self.positions.len() * width];
        let mut continuing = BTreeSet::new();
        let mut open = Vec::new();
        let mut pairs = (&self.first, &other.first);
        loop {
            work.spend(pairs.0.len() * pairs.1.len());
            for &mine in pairs.0 {
                for &its in pairs.1 {
                    let meets =
                        self.positions[mine].characters.meets(other.positions[its].characters);
                    if meets && !std::mem::replace(&mut seen[mine * width + its], true) {
                        open.push((mine, its));
                    }
                }
            }
            let Some((mine, its)) = open.pop().filter(|_| work.is_left()) else { break };
            let (mine, its) = (&self.positions[mine], &other.positions[its]);
            if mine.is_last {
                meeting.have_common_text |= its.is_last;
                continuing.extend(&its.next);
            }
            pairs = (&mine.next, &its.next);
        }
        meeting.continuing = continuing.into_iter().collect();
        meeting
    }

    fn union(&self, positions: &[usize]) -> Set {
        let mut union = Set::default();
        for &position in positions {
            union.insert_all(self.positions[position].characters);
        }
        union
    }

    /// Whether its deterministic form has at most two states a position, and some.
    fn stays_small(&self, alphabet: &Alphabet, work: &mut Work) -> bool {
        let follow = self.positions.iter().map(|position| &position.next);
        if follow.chain([&self.first]).all(|next| self.is_deterministic(next)) {
            return true;
        }
        let mut states = BTreeSet::new();
        let mut open = vec![self.first.clone()];
        while let Some(next) = open.pop() {
            for kind in alphabet.kinds() {
                work.spend(next.len());
                let of_kind =
                    |&&position: &&usize| self.positions[position].characters.contains(kind);
                let state: Vec<usize> = next.iter().filter(of_kind).copied().collect();
                if state.is_empty() || states.contains(&state) {
                    continue;
                }
                let mut next: Vec<usize> = state
                    .iter()
                    .flat_map(|&position| &self.positions[position].next)
                    .copied()
                    .collect();
                next.sort_unstable();
                next.dedup();
                work.spend(next.len());
                open.push(next);
                states.insert(state);
            }
            if states.len() > 2 * self.positions.len() + 16 || !work.is_left() {
                return false;
            }
        }
        true
    }

    fn is_deterministic(&self, next: &[usize]) -> bool {
        let mut seen = Set::default();
        next.iter().all(|&position| {
            let characters = self.positions[position].characters;
            let is_new = !seen.meets(characters);
            seen.insert_all(characters);
            is_new
        })
    }
}

/// A part of a terminal: where it begins and ends.
#[derive(Default)]
struct Part {
    first: Vec<usize>,
    last: Vec<usize>,
    is_nullable: bool,
}

struct Builder<'a> {
    source: &'a Source<'a>,
    positions: Vec<Position>,
    item: usize,
    visits: usize,
    edges: usize,
}

impl<'a> Builder<'a> {
    fn items(&mut self, items: &'a [Item]) -> Option<Part> {
        let mut whole = Part { is_nullable: true, ..Part::default() };
        for (place, item) in items.iter().enumerate() {
            self.item = place;
            let part = self.times(item)?;
            whole = self.sequence(whole, part)?;
        }
        Some(whole)
    }

    fn alternatives(&mut self, alternatives: &'a Alternatives) -> Option<Part> {
        let mut whole = Part::default();
        for sequence in alternatives {
            let mut part = Part { is_nullable: true, ..Part::default() };
            for item in sequence {
                let next = self.times(item)?;
                part = self.sequence(part, next)?;
            }
            whole.first.extend(part.first);
            whole.last.extend(part.last);
            whole.is_nullable |= part.is_nullable;
        }
        Some(whole)
    }

    fn sequence(&mut self, head: Part, tail: Part) -> Option<Part> {
        self.link(&head.last, &tail.first)?;
        let (mut first, mut last) = (head.first, tail.last);
        if head.is_nullable {
            first.extend(tail.first);
        }
        if tail.is_nullable {
            last.extend(head.last);
        }
        Some(Part { first, last, is_nullable: head.is_nullable && tail.is_nullable })
    }

    /// An item some number of times, as `x(x(x)?)?`.
    fn times(&mut self, item: &'a Item) -> Option<Part> {
        let copies = item.most.unwrap_or(item.least.max(1));
        let mut whole = Part { is_nullable: item.least == 0, ..Part::default() };
        let mut before = Part::default();
        for copy in 0..copies {
            let part = self.element(&item.element)?;
            self.link(&before.last, &part.first)?;
            if copy == 0 {
                whole.first.clone_from(&part.first);
                whole.is_nullable |= part.is_nullable;
            }
            if copy + 1 >= item.least || part.is_nullable {
                whole.last.extend(&part.last);
            }
            before = part;
        }
        if item.most.is_none() {
            self.link(&before.last, &before.first)?;
        }
        Some(whole)
    }

    fn element(&mut self, element: &'a Element) -> Option<Part> {
        self.visits += 1;
        if self.visits > MAX_POSITIONS {
            return None;
        }
        match element {
            Element::Text(text) => {
                let mut whole = Part { is_nullable: true, ..Part::default() };
                for character in text.chars() {
                    let part = self.position(self.source.alphabet.of_character(character))?;
                    whole = self.sequence(whole, part)?;
                }
                Some(whole)
            }
            Element::Class(class) => self.position(self.source.alphabet.of_class(class)),
            Element::Group(inner) => self.alternatives(inner),
            Element::Rule(name) => self.alternatives(&self.source.rule(name)?.alternatives),
        }
    }

    fn position(&mut self, characters: Set) -> Option<Part> {
        let index = self.positions.len();
        if index == MAX_POSITIONS {
            return None;
        }
        let (item, next) = (self.item, Vec::new());
        self.positions.push(Position { characters, item, next, is_last: false });
        Some(Part { first: vec![index], last: vec![index], is_nullable: false })
    }

    /// Positions that may follow others.
    fn link(&mut self, last: &[usize], first: &[usize]) -> Option<()> {
        self.edges += last.len() * first.len();
        if self.edges > 16 * MAX_POSITIONS {
            return None;
        }
        for &position in last {
            self.positions[position].next.extend(first);
        }
        Some(())
    }
}

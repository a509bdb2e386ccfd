//! A grammar cut into terminals, and what is left of its rules.

use super::super::class::Class;
use super::super::parse::{Alternatives, Element, Item};
use super::Source;

/// Where a grammar is cut. At first it is not, but at rules that are recursive.
pub(super) struct Cuts {
    /// Of each item whether a terminal begins with it.
    before: Vec<bool>,
    /// Of each item whether it is in no terminal, but what it consists of may be.
    open: Vec<bool>,
}

impl Cuts {
    pub(super) fn none(items: usize) -> Self {
        Self { before: vec![false; items], open: vec![false; items] }
    }

    /// Takes an item out of a terminal, or what it begins with if it begins the terminal.
    pub(super) fn cut(&mut self, items: &[Item], place: usize) {
        match items {
            [only] => self.open[only.number] = true,
            _ => self.before[items[place.max(1)].number] = true,
        }
    }

    /// Takes all items of a terminal apart.
    pub(super) fn cut_all(&mut self, items: &[Item]) {
        if let [only] = items {
            self.open[only.number] = true;
        }
        for item in items {
            self.before[item.number] = true;
        }
    }
}

/// One terminal at one place of a rule.
pub(in super::super) enum Terminal<'a> {
    Character(char),
    Class(&'a Class),
    Items(&'a [Item]),
}

impl Terminal<'_> {
    /// Whether it may have more than one character.
    pub(super) fn is_large(&self) -> bool {
        match self {
            Terminal::Items([only]) => match &only.element {
                Element::Text(text) => !only.is_once() || text.chars().count() > 1,
                Element::Class(_) => !only.is_once(),
                Element::Rule(_) | Element::Group(_) => true,
            },
            Terminal::Items(_) => true,
            Terminal::Character(_) | Terminal::Class(_) => false,
        }
    }
}

/// One of these sequences.
pub(in super::super) type Sequences = Vec<Vec<Piece>>;

pub(in super::super) enum Piece {
    /// The number of a terminal.
    Terminal(usize),
    /// The number of a rule.
    Rule(usize),
    Group {
        inner: Sequences,
        least: u32,
        most: Option<u32>,
    },
}

/// Rules of terminals.
pub(in super::super) struct Plan<'a> {
    /// Of each rule, if the first one needs it in this form.
    pub(in super::super) rules: Vec<Option<Sequences>>,
    pub(in super::super) terminals: Vec<Terminal<'a>>,
}

impl<'a> Plan<'a> {
    /// The plan with these cuts; `None` if it has too many terminals.
    pub(super) fn new(source: &Source<'a>, cuts: &Cuts, most: usize) -> Option<Self> {
        let rules = source.rules.iter().map(|_| None).collect();
        let mut planner =
            Planner { source, cuts, most, terminals: Vec::new(), open: vec![source.root] };
        let mut plan = Self { rules, terminals: Vec::new() };
        while let Some(index) = planner.open.pop() {
            if plan.rules[index].is_none() {
                let sequences = planner.sequences(&source.rules[index].alternatives)?;
                plan.rules[index] = Some(sequences);
            }
        }
        plan.terminals = planner.terminals;
        Some(plan)
    }
}

struct Planner<'a, 'b> {
    source: &'b Source<'a>,
    cuts: &'b Cuts,
    most: usize,
    terminals: Vec<Terminal<'a>>,
    /// Rules that are named.
    open: Vec<usize>,
}

impl<'a> Planner<'a, '_> {
    fn sequences(&mut self, alternatives: &'a Alternatives) -> Option<Sequences> {
        alternatives.iter().map(|sequence| self.sequence(sequence)).collect()
    }

    fn sequence(&mut self, items: &'a [Item]) -> Option<Vec<Piece>> {
        let (mut pieces, mut begun) = (Vec::new(), 0);
        for (place, item) in items.iter().enumerate() {
            let is_open = self.cuts.open[item.number] || !self.source.is_finite(&item.element);
            if is_open || self.cuts.before[item.number] {
                self.items(&items[begun..place], &mut pieces)?;
                begun = place;
            }
            if is_open {
                pieces.push(self.open(item)?);
                begun = place + 1;
            }
        }
        self.items(&items[begun..], &mut pieces)?;
        Some(pieces)
    }

    fn items(&mut self, items: &'a [Item], pieces: &mut Vec<Piece>) -> Option<()> {
        if !items.is_empty() {
            pieces.push(self.terminal(Terminal::Items(items))?);
        }
        Some(())
    }

    fn terminal(&mut self, terminal: Terminal<'a>) -> Option<Piece> {
        self.terminals.push(terminal);
        (self.terminals.len() <= self.most).then_some(Piece::Terminal(self.terminals.len() - 1))
    }

    fn rule(&mut self, name: &str) -> Option<Piece> {
        let index = self.source.names.get(name)?;
        self.open.push(index);
        Some(Piece::Rule(index))
    }

    fn open(&mut self, item: &'a Item) -> Option<Piece> {
        match &item.element {
            Element::Class(class) if item.is_once() => {
                return self.terminal(Terminal::Class(class));
            }
            Element::Rule(name) if item.is_once() => return self.rule(name),
            _ => {}
        }
        let inner = match &item.element {
            Element::Text(text) => {
                let characters =
                    text.chars().map(|character| self.terminal(Terminal::Character(character)));
                vec![characters.collect::<Option<_>>()?]
            }
            Element::Group(inner) => self.sequences(inner)?,
            Element::Class(class) => vec![vec![self.terminal(Terminal::Class(class))?]],
            Element::Rule(name) => vec![vec![self.rule(name)?]],
        };
        Some(Piece::Group { inner, least: item.least, most: item.most })
    }
}

//! A chart of the rules that a text may follow, after Earley, with the tokens that complete it.

use super::NEVER;
use super::rules::Rules;

/// The most places of rules in one set.
const MAX_ITEMS: usize = 4_000;

/// The most places of rules in all sets.
const MAX_ALL_ITEMS: usize = 200_000;

/// The most places that are looked at for a mask.
const MAX_WORK: usize = 1_000_000;

/// A place in a rule that began at a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    rule: usize,
    place: usize,
    origin: usize,
}

/// Places in the rules that a text may have reached after some terminals.
#[derive(Clone, Default)]
pub(super) struct Set {
    /// Symbols that may come next, in the order in which they were found.
    next: Vec<usize>,
    /// Items that wait for symbols that come next, by symbol.
    waiting: Vec<(usize, Vec<Item>)>,
    /// The fewest tokens after symbols that come next, by symbol.
    after: Vec<(usize, u32)>,
    /// The fewest tokens that complete the text.
    pub(super) cost: u32,
    /// The terminals that it comes after.
    terminals: Vec<usize>,
    items: usize,
}

impl Set {
    pub(super) fn next(&self) -> &[usize] {
        &self.next
    }

    /// The fewest tokens after a symbol that comes next.
    pub(super) fn after(&self, symbol: usize) -> u32 {
        let place = self.after.binary_search_by_key(&symbol, |&(known, _)| known);
        place.map_or(NEVER, |place| self.after[place].1)
    }

    fn set_after(&mut self, symbol: usize, tokens: u32) {
        match self.after.binary_search_by_key(&symbol, |&(known, _)| known) {
            Ok(place) => self.after[place].1 = tokens,
            Err(place) => self.after.insert(place, (symbol, tokens)),
        }
    }

    /// The places of rules that wait for a symbol.
    fn waiting(&self, symbol: usize) -> &[Item] {
        let place = self.waiting.binary_search_by_key(&symbol, |&(known, _)| known);
        place.map_or(&[], |place| &self.waiting[place].1)
    }

    fn add_waiting(&mut self, symbol: usize) -> &mut Vec<Item> {
        let place = self.waiting.binary_search_by_key(&symbol, |&(known, _)| known);
        let place = place.unwrap_or_else(|place| {
            self.waiting.insert(place, (symbol, Vec::new()));
            place
        });
        &mut self.waiting[place].1
    }
}

/// The sets of a text.
#[derive(Clone, Default)]
pub(super) struct Chart {
    sets: Vec<Set>,
    items: usize,
    /// Places that may still be looked at before the next mask.
    work: usize,
}

impl Chart {
    /// Before the first terminal. `None` if there are too many places.
    pub(super) fn new(rules: &Rules) -> Option<Self> {
        let mut chart = Self { work: MAX_WORK, ..Self::default() };
        let begin = |&rule: &usize| Item { rule, place: 0, origin: 0 };
        let items = rules.symbols[rules.start].rules.iter().map(begin).collect();
        chart.push(rules, items, vec![]).then_some(chart)
    }

    /// Allows the work of another mask.
    pub(super) fn allow_work(&mut self) {
        self.work = MAX_WORK;
    }

    /// Counts work that was done elsewhere.
    pub(super) fn spend(&mut self, work: usize) {
        self.work = self.work.saturating_sub(work);
    }

    /// Whether the work of a mask is used up. What was found out since is not all there is.
    pub(super) fn is_exhausted(&self) -> bool {
        self.work == 0
    }

    pub(super) fn set(&self, index: usize) -> &Set {
        &self.sets[index]
    }

    /// Takes back the sets behind this one.
    pub(super) fn truncate(&mut self, last: usize) {
        let first = (last + 1).min(self.sets.len());
        let removed = self.sets.drain(first..).map(|set| set.items).sum::<usize>();
        self.items -= removed;
    }

    /// Has the set behind a set be that after one of these terminals; whether the rules allow it.
    pub(super) fn advance(&mut self, rules: &Rules, set: usize, terminals: Vec<usize>) -> bool {
        if let Some(next) = self.sets.get(set + 1).filter(|next| next.terminals == terminals) {
            // Many tokens of a vocabulary end the same terminal.
            return next.items > 0 && self.items <= MAX_ALL_ITEMS;
        }
        self.truncate(set);
        let Some(last) = self.sets.last() else { return false };
        let waiting = terminals.iter().flat_map(|&terminal| last.waiting(terminal));
        let items = waiting.map(|item| Item { place: item.place + 1, ..*item }).collect();
        self.push(rules, items, terminals)
    }

    /// Adds a set with these items and all that follow from them.
    fn push(&mut self, rules: &Rules, mut items: Vec<Item>, terminals: Vec<usize>) -> bool {
        let index = self.sets.len();
        let mut set = Set { cost: NEVER, terminals, ..Set::default() };
        let mut seen = items.clone();
        seen.sort_unstable();
        let mut done = 0;
        while let Some(&item) = items.get(done) {
            done += 1;
            self.work = self.work.saturating_sub(1);
            if items.len() > MAX_ITEMS || self.work == 0 {
                return false;
            }
            let mut found: Vec<Item> = Vec::new();
            let rule = &rules.list[item.rule];
            match rule.parts.get(item.place) {
                None if item.origin < index => {
                    let above = self.sets[item.origin].waiting(rule.symbol);
                    let moved = |item: &Item| Item { place: item.place + 1, ..*item };
                    found.extend(above.iter().map(moved));
                }
                // What is empty has been left out where it comes next.
                None => {}
                Some(&next) => {
                    let symbol = &rules.symbols[next];
                    let waiting = set.add_waiting(next);
                    let is_first = waiting.is_empty();
                    waiting.push(item);
                    if is_first {
                        set.next.push(next);
                        let begin = |&rule: &usize| Item { rule, place: 0, origin: index };
                        found.extend(symbol.rules.iter().map(begin));
                    }
                    if symbol.is_nullable {
                        found.push(Item { place: item.place + 1, ..item });
                    }
                }
            }
            for item in found {
                if let Err(place) = seen.binary_search(&item) {
                    seen.insert(place, item);
                    items.push(item);
                }
            }
        }
        if !self.add_costs(rules, &items, &mut set) {
            return false;
        }
        (set.items, self.items) = (items.len(), self.items + items.len());
        self.sets.push(set);
        !items.is_empty() && self.items <= MAX_ALL_ITEMS
    }

    /// Whether there was work left for it.
    fn add_costs(&mut self, rules: &Rules, items: &[Item], set: &mut Set) -> bool {
        let index = self.sets.len();
        if index == 0 {
            set.set_after(rules.start, 0);
        }
        // The cost after a rule is that after its symbol, where that began.
        let beyond = |item: &Item, set: &Set| {
            let symbol = rules.list[item.rule].symbol;
            let origin = if item.origin == index { set } else { &self.sets[item.origin] };
            origin.after(symbol)
        };
        let mut is_changed = true;
        while std::mem::take(&mut is_changed) {
            self.work = self.work.saturating_sub(items.len());
            if self.work == 0 {
                return false;
            }
            for place in 0..set.next.len() {
                let symbol = set.next[place];
                let costs = set.waiting(symbol).iter().map(|item| {
                    let own = rules.list[item.rule].cost_from(item.place + 1);
                    own.saturating_add(beyond(item, set)).min(NEVER)
                });
                let least = costs.min().unwrap_or(NEVER);
                if least < set.after(symbol) {
                    set.set_after(symbol, least);
                    is_changed = true;
                }
            }
        }
        let costs = items.iter().map(|item| {
            let own = rules.list[item.rule].cost_from(item.place);
            own.saturating_add(beyond(item, set)).min(NEVER)
        });
        let empty = index == 0 && rules.symbols[rules.start].is_nullable;
        set.cost = if empty { 0 } else { costs.min().unwrap_or(NEVER) };
        true
    }
}

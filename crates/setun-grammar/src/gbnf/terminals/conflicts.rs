//! Terminals that would be matched too far.

use super::alphabet::{Alphabet, Set};
use super::automaton::{Automaton, Meeting};
use super::bits::Bits;
use super::order::Order;
use super::work::Work;

/// Terminals that may go on with a byte which may also begin what follows another one that is
/// allowed at the same place, each with the item that goes on.
pub(super) fn conflicts(
    automata: &[&Automaton],
    order: &Order,
    alphabet: &Alphabet,
    work: &mut Work,
) -> Vec<(usize, usize)> {
    let follow = order.next.iter().map(|next| first_bytes(next, automata, alphabet));
    let follow: Vec<Set> = follow.collect();
    let together = vec![Bits::none(automata.len()); automata.len()];
    let mut search = Search { together, open: Vec::new(), work };
    search.add(&order.first, &order.first);
    let mut found = Vec::new();
    while let Some((one, other)) = search.open.pop().filter(|_| search.work.is_left()) {
        let meeting = automata[one].meeting(automata[other], search.work);
        let Meeting { have_common_text, continuing } = meeting;
        for position in continuing {
            let position = automata[other].position(position);
            if alphabet.first_bytes(position.characters).meets(follow[one]) {
                found.push((other, position.item));
            }
        }
        if have_common_text {
            search.add(&order.next[one], &order.next[other]);
        }
    }
    found
}

fn first_bytes(terminals: &Bits, automata: &[&Automaton], alphabet: &Alphabet) -> Set {
    let mut characters = Set::default();
    for terminal in terminals.iter() {
        characters.insert_all(automata[terminal].first());
    }
    alphabet.first_bytes(characters)
}

struct Search<'a> {
    /// Of each terminal those that are allowed at a place where it is.
    together: Vec<Bits>,
    open: Vec<(usize, usize)>,
    work: &'a mut Work,
}

impl Search<'_> {
    /// Any of these may be at one place with any of the others.
    fn add(&mut self, some: &Bits, others: &Bits) {
        for one in some.iter() {
            self.work.spend(others.words());
            for other in others.iter() {
                if self.together[one].insert(other) {
                    self.open.push((one, other));
                }
            }
        }
    }
}

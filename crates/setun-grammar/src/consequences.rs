//! Facts that follow from others.

/// A fact that holds once all of its premises hold. Facts are numbers.
pub(crate) struct Implication {
    pub(crate) fact: usize,
    pub(crate) premises: Vec<usize>,
}

/// Which of the facts below `facts` hold, found in time that is linear in the size of the rules.
pub(crate) fn consequences(facts: usize, rules: &[Implication]) -> Vec<bool> {
    let mut users = vec![Vec::new(); facts];
    let mut missing = Vec::new(); // premises of each rule that do not hold yet
    let mut found = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        for &premise in &rule.premises {
            users[premise].push(index);
        }
        missing.push(rule.premises.len());
        if rule.premises.is_empty() {
            found.push(rule.fact);
        }
    }
    let mut holds = vec![false; facts];
    while let Some(fact) = found.pop() {
        if std::mem::replace(&mut holds[fact], true) {
            continue;
        }
        for &index in &users[fact] {
            missing[index] -= 1;
            if missing[index] == 0 {
                found.push(rules[index].fact);
            }
        }
    }
    holds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_does_not_hold() {
        let rule = |fact, premises: &[usize]| Implication { fact, premises: premises.to_vec() };
        let ring = [rule(0, &[1]), rule(1, &[2, 2]), rule(2, &[0]), rule(3, &[])];
        assert_eq!(consequences(4, &ring), [false, false, false, true]);
        let opened: Vec<Implication> = ring.into_iter().chain([rule(2, &[3])]).collect();
        assert_eq!(consequences(4, &opened), [true; 4]);
    }
}

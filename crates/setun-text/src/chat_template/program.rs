//! A template as instructions that are charged for.
//!
//! What minijinja compiles is rebuilt with charges between its instructions: see [`operators`]. Loops
//! that are left from inside another block also leave that block, which minijinja's do not.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use minijinja::machinery::{self, CodeGenerator, Instruction, Instructions};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};

use super::{compiled::Compiled, open_macro, operators};

/// A template with its instructions.
#[derive(Clone)]
pub(super) struct Program {
    compiled: Arc<Compiled>,
}

impl Program {
    /// Compiles a guarded template.
    pub(super) fn new(environment: &Environment<'_>, source: &str) -> Result<Self, Error> {
        let compiled = Compiled::new(source, |source| compile(environment, source))?;
        Ok(Self { compiled: Arc::new(compiled) })
    }

    /// The text of the template.
    pub(super) fn source(&self) -> &str {
        self.compiled.text()
    }

    /// The names that the template needs and does not set itself.
    pub(super) fn variables(
        &self,
        environment: &Environment<'_>,
    ) -> Result<HashSet<String>, Error> {
        let template = environment.template_from_str(self.source())?;
        Ok(template.undeclared_variables(false))
    }

    /// What the template writes with these variables.
    pub(super) fn render(
        &self,
        environment: &Environment<'_>,
        variables: Value,
    ) -> Result<String, Error> {
        let instructions = self.compiled.instructions();
        let (mut text, blocks) = (String::new(), BTreeMap::new());
        let mut output = machinery::make_string_output(&mut text);
        let escape = AutoEscape::None;
        machinery::eval(environment, instructions, variables, &blocks, &mut output, escape)?;
        Ok(text)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Program").field("source", &self.source()).finish_non_exhaustive()
    }
}

/// Instructions with charges. Errors are given the template's name where they are reported.
fn compile<'s>(environment: &Environment<'_>, source: &'s str) -> Result<Instructions<'s>, Error> {
    let tree = machinery::parse(source, "", environment.syntax().clone())?;
    let mut generator = CodeGenerator::new("", source);
    generator.compile_stmt(&tree);
    let (instructions, _) = generator.finish();
    Charged::new(&instructions).rebuild()
}

/// The instructions of a template, and those that are made of them.
struct Charged<'a, 's> {
    original: &'a Instructions<'s>,
    targets: BTreeSet<u32>,     // of jumps
    macros: BTreeMap<u32, u32>, // where each begins, and how long it is
    made: Instructions<'s>,
    length: u32,      // of what was made
    places: Vec<u32>, // of the original instructions in it
    open: Vec<Block>,
}

/// A block that an instruction stands in.
enum Block {
    /// A loop with the places where it goes on and ends.
    Loop(u32, u32),
    Scope,
    Capture,
}

/// Bytes of a macro, and of a variable that it encloses.
const MACRO_BYTES: u64 = 512;

/// Bytes of a text with which a comparison costs no more than any other instruction.
const SHORT: usize = 64;

/// Given to filters that are not kept at hand.
const NO_LOCAL: u8 = u8::MAX;

impl<'a, 's> Charged<'a, 's> {
    fn new(original: &'a Instructions<'s>) -> Self {
        let (mut targets, mut macros) = (BTreeSet::new(), BTreeMap::new());
        for (place, instruction) in (0..).map_while(|place| Some((place, original.get(place)?))) {
            if let Instruction::BuildMacro(_, start, _) = *instruction {
                macros.insert(start, place.saturating_sub(start));
            } else if let Some(target) = target(&mut instruction.clone()) {
                targets.insert(*target);
            }
        }
        let made = Instructions::new(original.name(), original.source());
        Self { original, targets, macros, made, length: 0, places: vec![], open: vec![] }
    }

    fn rebuild(mut self) -> Result<Instructions<'s>, Error> {
        let original = self.original;
        for (place, instruction) in (0..).map_while(|place| Some((place, original.get(place)?))) {
            self.places.push(self.length);
            if let Some(&length) = self.macros.get(&place) {
                self.add_charge(place, operators::TICK, length.into());
            }
            self.follow_blocks(place, instruction)?;
            self.add_with_charges(place, instruction);
        }
        self.places.push(self.length);
        for place in 0..self.length {
            if let Some(target) = self.made.get_mut(place).and_then(target) {
                *target = self.places.get(*target as usize).copied().unwrap_or(self.length);
            }
        }
        Ok(self.made)
    }

    fn add(&mut self, place: u32, instruction: Instruction<'s>) {
        let line = self.original.get_line(place).and_then(|line| u16::try_from(line).ok());
        match line {
            Some(line) => self.made.add_with_line(instruction, line),
            None => self.made.add(instruction),
        };
        self.length += 1;
    }

    /// A filter that gets one value and gives one back.
    fn add_filter(&mut self, place: u32, name: &'static str) {
        self.add(place, Instruction::ApplyFilter(name, Some(1), NO_LOCAL));
    }

    /// A charge that depends on no value.
    fn add_charge(&mut self, place: u32, name: &'static str, charge: u64) {
        self.add(place, Instruction::LoadConst(Value::from(charge)));
        self.add_filter(place, name);
        self.add(place, Instruction::DiscardTop);
    }

    /// A charge for the operands of the next instruction, which stay where they are.
    fn add_before(&mut self, place: u32, name: &'static str, operands: usize) {
        self.add(place, Instruction::BuildTuple(Some(operands)));
        self.add_filter(place, name);
        self.add(place, Instruction::UnpackList(operands));
    }

    /// Adds an instruction of the original with what is to be charged for it.
    fn add_with_charges(&mut self, place: u32, instruction: &Instruction<'s>) {
        use Instruction as I;
        match *instruction {
            // Written by the formatter, which charges.
            I::EmitRaw(text) => {
                self.add(place, I::LoadConst(Value::from_safe_string(text.to_owned())));
                return self.add(place, I::Emit);
            }
            I::Slice => {
                return self.add(place, I::ApplyFilter(operators::SLICE, Some(4), NO_LOCAL));
            }
            I::Rem => {
                return self.add(place, I::ApplyFilter(operators::REMAINDER, Some(2), NO_LOCAL));
            }
            I::BuildMap(pairs) => {
                self.add(place, I::BuildList(Some(2 * pairs)));
                return self.add_filter(place, operators::MAP);
            }
            I::UnpackLists(lists) => {
                self.add(place, I::BuildList(Some(lists)));
                self.add_filter(place, operators::ARGUMENTS);
                return self.add(place, I::UnpackLists(1));
            }
            I::SetAttr(_) => {
                self.add(place, I::Swap);
                self.add_filter(place, operators::ENTRY_SET);
                self.add(place, I::Swap);
            }
            I::Iterate(end) => {
                self.add_charge(place, operators::TICK, end.saturating_sub(place).into());
            }
            I::BuildMacro(..) => {
                let enclosed = (0..place).rev().skip(2);
                let is_enclosed =
                    |place: &u32| matches!(self.original.get(*place), Some(I::Enclose(_)));
                let enclosed = enclosed.take_while(is_enclosed).count() as u64;
                self.add_charge(place, operators::MACRO, MACRO_BYTES * (1 + enclosed));
            }
            I::Add => self.add_before(place, operators::ADD, 2),
            I::Mul => self.add_before(place, operators::MULTIPLY, 2),
            I::StringConcat => self.add_before(place, operators::CONCATENATE, 2),
            I::In => self.add_before(place, operators::IN, 2),
            I::Eq | I::Ne | I::Lt | I::Lte | I::Gt | I::Gte if !self.follows_constant(place) => {
                self.add_before(place, operators::READ, 2);
            }
            I::CompareAndPreserve(_) => self.add_before(place, operators::READ, 2),
            I::GetItem if !self.follows_constant(place) => {
                self.add_before(place, operators::ITEM, 2);
            }
            I::MergeKwargs(maps) => self.add_before(place, operators::READ, maps),
            I::CallMethod("changed", Some(arguments)) => {
                self.add_before(place, operators::CHANGED, arguments.into());
            }
            _ => {}
        }
        self.add(place, instruction.clone());
        match instruction {
            I::Add | I::Mul => self.add_filter(place, operators::FLAT),
            I::BuildList(_) | I::BuildTuple(_) => self.add_filter(place, operators::LIST),
            I::BuildMacro(..) if self.builds_open_macro(place) => {
                self.add_filter(place, operators::OPEN_MACRO);
            }
            _ => {}
        }
    }

    /// Whether the names before a macro are of one that takes more arguments than those.
    fn builds_open_macro(&self, place: u32) -> bool {
        let before = place.checked_sub(1).and_then(|before| self.original.get(before));
        matches!(before, Some(Instruction::LoadConst(names)) if open_macro::is_open(names))
    }

    /// Whether the operand on top is a short constant text, or for comparisons another constant that
    /// has no entries.
    fn follows_constant(&self, place: u32) -> bool {
        let before = place.checked_sub(1).and_then(|before| self.original.get(before));
        let Some(Instruction::LoadConst(value)) = before else { return false };
        let is_item = matches!(self.original.get(place), Some(Instruction::GetItem));
        let is_short = match value.as_str() {
            Some(text) => text.len() <= SHORT,
            None => !is_item && value.as_object().is_none(),
        };
        is_short && !self.targets.contains(&place)
    }

    /// Keeps the blocks that are open, and leaves those that a jump would leave open.
    fn follow_blocks(&mut self, place: u32, instruction: &Instruction<'s>) -> Result<(), Error> {
        use Instruction as I;
        if matches!(self.open.last(), Some(&Block::Loop(_, end)) if end == place) {
            self.open.pop();
        }
        match instruction {
            I::Iterate(end) => self.open.push(Block::Loop(place, *end)),
            I::PushWith => self.open.push(Block::Scope),
            I::BeginCapture(_) => self.open.push(Block::Capture),
            I::PopFrame | I::EndCapture => {
                self.open.pop();
            }
            I::Jump(target) => self.leave_blocks(place, *target)?,
            I::CallMethod("cycle", None | Some(0 | 1)) | I::CallMethod("changed", None) => {
                return Err(refused("`cycle` and `changed` need arguments that are no list"));
            }
            I::PushAutoEscape => return Err(refused("there is no `autoescape`")),
            _ => {}
        }
        Ok(())
    }

    /// What a jump to the start or the end of a loop has to do before.
    fn leave_blocks(&mut self, place: u32, target: u32) -> Result<(), Error> {
        let is_left = |block: &Block| match *block {
            Block::Loop(start, end) => target == start || target == end,
            _ => false,
        };
        let Some(left) = self.open.iter().rposition(is_left) else {
            let is_back = target <= place;
            let message = "`break` or `continue` stands in no loop";
            return if is_back { Err(refused(message)) } else { Ok(()) };
        };
        for open in (left + 1..self.open.len()).rev() {
            match self.open[open] {
                Block::Loop(..) | Block::Scope => self.add(place, Instruction::PopFrame),
                Block::Capture => {
                    self.add(place, Instruction::EndCapture);
                    self.add(place, Instruction::DiscardTop);
                }
            }
        }
        Ok(())
    }
}

fn refused(what: &'static str) -> Error {
    Error::new(ErrorKind::SyntaxError, what)
}

/// Where an instruction may go on instead of the next one, or where its macro begins.
fn target<'i>(instruction: &'i mut Instruction<'_>) -> Option<&'i mut u32> {
    match instruction {
        Instruction::Jump(target)
        | Instruction::JumpIfFalse(target)
        | Instruction::JumpIfFalseOrPop(target)
        | Instruction::JumpIfTrueOrPop(target)
        | Instruction::Iterate(target)
        | Instruction::BuildMacro(_, target, _) => Some(target),
        _ => None,
    }
}

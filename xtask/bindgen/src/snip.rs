//! Functions that no page can call, emptied.

use anyhow::Result;
use wasm_encoder::{CodeSection, Function, Instruction, Module, RawSection};
use wasmparser::{KnownCustom, Name, Parser, Payload, TypeRef};

/// The module in which functions whose names have one of `parts` in them are a trap, so that an
/// optimizer removes what only they need.
///
/// # Errors
///
/// Fails if `module` is not a valid WebAssembly module.
pub fn snip(module: &[u8], parts: &[&str]) -> Result<Vec<u8>> {
    let code = code(module, &functions(module, parts)?)?;
    let mut snipped = Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        match (&payload, payload.as_section()) {
            (Payload::CodeSectionStart { .. }, _) => _ = snipped.section(&code),
            (_, Some((id, range))) => _ = snipped.section(&RawSection { id, data: &module[range] }),
            _ => {}
        }
    }
    Ok(snipped.finish())
}

/// All functions' bodies, those of `trapped` emptied.
fn code(module: &[u8], trapped: &[u32]) -> Result<CodeSection> {
    let mut trap = Function::new([]);
    trap.instruction(&Instruction::Unreachable).instruction(&Instruction::End);
    let (mut code, mut index) = (CodeSection::new(), 0);
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    index += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                }
            }
            Payload::CodeSectionEntry(body) => {
                if trapped.contains(&index) {
                    code.function(&trap);
                } else {
                    code.raw(&module[body.range()]);
                }
                index += 1;
            }
            _ => {}
        }
    }
    Ok(code)
}

/// The functions whose names have one of `parts` in them.
fn functions(module: &[u8], parts: &[&str]) -> Result<Vec<u32>> {
    let mut found = vec![];
    for payload in Parser::new(0).parse_all(module) {
        let Payload::CustomSection(section) = payload? else { continue };
        let KnownCustom::Name(names) = section.as_known() else { continue };
        for name in names {
            let Name::Function(functions) = name? else { continue };
            for naming in functions {
                let naming = naming?;
                if parts.iter().any(|part| naming.name.contains(part)) {
                    found.push(naming.index);
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::{rank, tests::module};

    #[test]
    fn functions_are_trapped_by_their_names() {
        let ranked = rank(&module([7, 3, 5])).unwrap();
        let snipped = snip(&ranked, &["00000002", "1"]).unwrap();
        let bodies = |module: &[u8]| {
            let mut bodies = vec![];
            for payload in Parser::new(0).parse_all(module) {
                if let Payload::CodeSectionEntry(body) = payload.unwrap() {
                    bodies.push(module[body.range()].to_vec());
                }
            }
            bodies
        };
        let (before, after) = (bodies(&ranked), bodies(&snipped));
        assert_eq!(snip(&ranked, &["no name"]).unwrap(), ranked);
        assert_eq!(after[1], before[1]);
        assert_eq!((&after[0][..], &after[2][..]), (&[0, 0, 0x0b][..], &[0, 0, 0x0b][..]));
    }
}

//! Names for a module's functions that sort them by what their bodies share.

use anyhow::Result;
use wasm_encoder::{NameMap, NameSection, Section};
use wasmparser::{Parser, Payload, TypeRef};

use crate::order::order;

/// The module with a name section in which functions with like bodies have neighbouring names.
///
/// A compressor finds what functions share where they lie beside each other; what they are called
/// tells less about that than their bytes.
///
/// # Errors
///
/// Fails if `module` is not a valid WebAssembly module.
pub fn rank(module: &[u8]) -> Result<Vec<u8>> {
    let mut imported = 0;
    let mut bodies = vec![];
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                }
            }
            Payload::CodeSectionEntry(body) => bodies.push(&module[body.range()]),
            _ => {}
        }
    }
    let mut names = vec![String::new(); bodies.len()];
    for (rank, index) in order(&bodies).into_iter().enumerate() {
        names[index] = format!("{rank:08}");
    }
    let mut functions = NameMap::new();
    (imported..).zip(&names).for_each(|(index, name)| functions.append(index, name));
    let mut section = NameSection::new();
    section.functions(&functions);
    let mut named = module.to_vec();
    section.append_to(&mut named);
    Ok(named)
}

#[cfg(test)]
pub(crate) mod tests {
    use wasm_encoder::{
        CodeSection, EntityType, Function, FunctionSection, ImportSection, Instruction, Module,
        TypeSection,
    };
    use wasmparser::{KnownCustom, Name};

    use super::*;

    /// A module that imports a function and has three that return numbers.
    pub(crate) fn module(numbers: [i32; 3]) -> Vec<u8> {
        let (mut types, mut imports) = (TypeSection::new(), ImportSection::new());
        types.ty().function([], [wasm_encoder::ValType::I32]);
        imports.import("page", "number", EntityType::Function(0));
        let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
        for number in numbers {
            functions.function(0);
            let mut function = Function::new([]);
            function.instruction(&Instruction::I32Const(number));
            function.instruction(&Instruction::End);
            code.function(&function);
        }
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&code);
        module.finish()
    }

    #[test]
    fn names_sort_functions_by_their_bodies_and_leave_imports_alone() {
        let named = rank(&module([7, 3, 5])).unwrap();
        let mut found = vec![];
        for payload in Parser::new(0).parse_all(&named) {
            let Payload::CustomSection(section) = payload.unwrap() else { continue };
            let KnownCustom::Name(names) = section.as_known() else { continue };
            for name in names {
                let Name::Function(functions) = name.unwrap() else { continue };
                let functions = functions.into_iter().map(Result::unwrap);
                found.extend(functions.map(|naming| (naming.index, naming.name.to_owned())));
            }
        }
        let expected = [(1, "00000002"), (2, "00000000"), (3, "00000001")];
        assert_eq!(found, expected.map(|(index, name)| (index, name.to_owned())));
    }

    #[test]
    fn what_is_no_module_is_refused() {
        assert!(rank(b"\0asm").is_err());
    }
}

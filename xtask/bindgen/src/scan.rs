//! Walks a module's instructions and memory.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use wasmparser::{MemoryType, Operator, Parser, Payload, TypeRef};

macro_rules! name_proposals {
    ($( @$proposal:ident $operator:ident $({ $($argument:ident: $type:ty),* })? => $visit:ident ($($annotation:tt)*) )*) => {
        /// The proposal that brought an instruction to WebAssembly.
        fn proposal(operator: &Operator<'_>) -> &'static str {
            match operator {
                $( Operator::$operator { .. } => stringify!($proposal), )*
                _ => "unknown",
            }
        }
    };
}
wasmparser::for_each_operator!(name_proposals);

/// Counts `module`'s instructions by proposal, and the relaxed dot products among them, and
/// describes its memory.
///
/// # Errors
///
/// Fails if `module` is not a valid WebAssembly module.
pub fn scan(module: &[u8]) -> Result<Value> {
    let mut proposals = BTreeMap::<&str, u64>::new();
    let mut relaxed_dots = 0_u64;
    let mut memory = Value::Null;
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    if let TypeRef::Memory(found) = import?.ty {
                        memory = describe(found, true);
                    }
                }
            }
            Payload::MemorySection(memories) => {
                for found in memories {
                    memory = describe(found?, false);
                }
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader()? {
                    let operator = operator?;
                    *proposals.entry(proposal(&operator)).or_default() += 1;
                    relaxed_dots += u64::from(is_relaxed_dot(&operator));
                }
            }
            _ => {}
        }
    }
    Ok(json!({ "instructions": proposals, "relaxed_dots": relaxed_dots, "memory": memory }))
}

fn is_relaxed_dot(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::I16x8RelaxedDotI8x16I7x16S | Operator::I32x4RelaxedDotI8x16I7x16AddS
    )
}

/// Sizes are in pages of 64 KiB.
fn describe(memory: MemoryType, imported: bool) -> Value {
    json!({
        "imported": imported,
        "shared": memory.shared,
        "initial": memory.initial,
        "maximum": memory.maximum,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module written by hand from the specification's binary format: one function that
    /// applies one instruction to constants of type v128 and drops the result.
    fn module(instruction: &[u8], arguments: usize) -> Vec<u8> {
        let mut body = vec![0];
        for _ in 0..arguments {
            body.extend([0xfd, 0x0c]);
            body.extend([0; 16]);
        }
        body.extend(instruction);
        body.extend([0x1a, 0x0b]);
        let mut bytes = b"\0asm\x01\0\0\0".to_vec();
        bytes.extend([1, 4, 1, 0x60, 0, 0]);
        bytes.extend([3, 2, 1, 0]);
        let size = u8::try_from(body.len()).unwrap();
        bytes.extend([10, size + 2, 1, size]);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn finds_the_relaxed_dot() {
        let found = scan(&module(&[0xfd, 0x93, 0x02], 3)).unwrap();
        assert_eq!(found["relaxed_dots"], 1);
        assert_eq!(found["instructions"]["relaxed_simd"], 1);
    }

    #[test]
    fn an_exact_dot_is_not_relaxed() {
        let found = scan(&module(&[0xfd, 0xba, 0x01], 2)).unwrap();
        assert_eq!(found["relaxed_dots"], 0);
        assert_eq!(found["instructions"]["relaxed_simd"], Value::Null);
        assert_eq!(found["instructions"]["simd"], 3);
    }

    #[test]
    fn tells_a_shared_import_from_a_memory_of_its_own() {
        let own = scan(b"\0asm\x01\0\0\0\x05\x03\x01\x00\x02").unwrap();
        let expected = json!({ "imported": false, "shared": false, "initial": 2, "maximum": null });
        assert_eq!(own["memory"], expected);
        let shared = scan(b"\0asm\x01\0\0\0\x02\x09\x01\x01a\x01m\x02\x03\x02\x10").unwrap();
        let expected = json!({ "imported": true, "shared": true, "initial": 2, "maximum": 16 });
        assert_eq!(shared["memory"], expected);
    }

    #[test]
    fn refuses_what_is_no_module() {
        assert!(scan(b"not a module").is_err());
    }
}

//! Rings of made-up crates.

use std::fs;

use super::*;

/// The first line of each ring of the crate that `files` make, `lib.rs` its root.
fn rings_of(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let found = rings(&Crate::read(&folder.path().join("lib.rs")).unwrap());
    found.iter().map(|ring| ring.lines().next().unwrap().to_owned()).collect()
}

const AB: [&str; 1] = ["a ring of 2: a, b"];
const ABC: [&str; 1] = ["a ring of 3: a, b, c"];

#[test]
fn modules_without_a_circle_are_no_ring() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ("a.rs", "use crate::b::B; use crate::c::C; pub struct A(B, C);"),
        ("b.rs", "use crate::c::C; pub struct B(C);"),
        ("c.rs", "use std::fmt; pub struct C;"),
    ];
    assert!(rings_of(&files).is_empty());
}

#[test]
fn two_modules_that_import_each_other_are_one() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use super::a::A; pub struct B;"),
    ];
    assert_eq!(rings_of(&files), AB);
}

#[test]
fn a_longer_circle_is_one_ring() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "pub struct B; fn b() { crate::c::run() }"),
        ("c.rs", "pub fn run() {} impl super::a::T for u8 {}"),
        ("d.rs", "use crate::a; use crate::b::B;"),
    ];
    assert_eq!(rings_of(&files), ABC);
}

#[test]
fn nested_groups_renames_and_macros_are_read() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::{b::{self as other, inner::{Deep as D}}, c as _};"),
        ("b.rs", "pub mod inner { pub struct Deep; } fn b() { println!(\"{}\", crate::c::X) }"),
        ("c.rs", "pub const X: u8 = 0; macro_rules! m { () => { $crate::a::f() } }"),
    ];
    assert_eq!(rings_of(&files), ABC);
}

#[test]
fn re_exports_lead_to_what_they_name() {
    let through_the_root = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
        ("a.rs", "use crate::B; pub struct A;"),
        ("b.rs", "use crate::A; pub struct B;"),
    ];
    assert_eq!(rings_of(&through_the_root), AB);
    let through_a_sibling = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::c::B as Other; pub struct A;"),
        ("b.rs", "use super::*; use a::A; pub struct B;"),
        ("c.rs", "pub use crate::b::B;"),
    ];
    assert_eq!(rings_of(&through_a_sibling), ABC);
}

#[test]
fn a_parents_glob_brings_names_of_siblings() {
    let files = [
        ("lib.rs", "mod a; mod b; use a::A;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use super::*; pub struct B(A);"),
    ];
    assert_eq!(rings_of(&files), AB);
}

#[test]
fn siblings_are_compared_with_all_below_them() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod x; mod y;"),
        ("a/x.rs", "use crate::b::z::Z;"),
        ("a/y.rs", "pub struct Y;"),
        ("b.rs", "pub mod z; mod w;"),
        ("b/z.rs", "pub struct Z;"),
        ("b/w.rs", "use crate::a::y::Y;"),
    ];
    assert_eq!(rings_of(&files), AB);
}

#[test]
fn rings_below_a_module_are_found() {
    let files = [(
        "lib.rs",
        "mod m { mod a { use super::b::B; pub struct A; } mod b { use super::a::A; pub struct B; } }",
    )];
    assert_eq!(rings_of(&files), ["a ring of 2: m::a, m::b"]);
}

#[test]
fn parents_and_children_are_no_ring() {
    let files = [
        ("lib.rs", "mod a; pub use a::A; pub struct Root; fn f() { a::b::run() }"),
        ("a.rs", "pub mod b; pub use b::B; use crate::Root; pub struct A(B);"),
        ("a/b.rs", "use super::A; use crate::Root; pub struct B; pub fn run() {}"),
    ];
    assert!(rings_of(&files).is_empty());
}

#[test]
fn tests_do_not_count() {
    let files = [
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod missing;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        (
            "b.rs",
            "pub struct B; #[cfg(test)] mod tests { use crate::a::A; } #[cfg(test)] use crate::a::A;",
        ),
    ];
    assert!(rings_of(&files).is_empty());
}

#[test]
fn other_crates_and_local_names_are_no_modules() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use b_crate::a::X; use crate::b::B; pub fn a() { let b = 1; drop(b) }"),
        (
            "b.rs",
            "use ::a::Thing; use other::thing as other; fn f() { other::x() } pub struct B; pub fn b(a: u8) -> u8 { a }",
        ),
    ];
    assert!(rings_of(&files).is_empty());
}

#[test]
fn a_ring_names_a_line_for_each_pair() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lib.rs"), "mod a;\nmod b;\n").unwrap();
    fs::write(folder.path().join("a.rs"), "\nuse crate::b::B;\n").unwrap();
    fs::write(folder.path().join("b.rs"), "pub struct B;\n\nfn f() { crate::a::g() }\n").unwrap();
    let found = rings(&Crate::read(&folder.path().join("lib.rs")).unwrap());
    assert!(found[0].contains("a -> b: ") && found[0].contains("a.rs:2: crate::b::B"), "{found:?}");
    assert!(found[0].contains("b -> a: ") && found[0].contains("b.rs:3: crate::a::g"), "{found:?}");
}

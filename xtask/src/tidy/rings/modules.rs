//! The tree of a crate's modules, with the paths that each one names.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, ItemMod, ItemUse, Lit, Meta, UseTree};

/// A crate as a tree of modules; the first is its root.
pub(super) struct Crate {
    pub(super) modules: Vec<Module>,
}

/// A module outside of tests.
pub(super) struct Module {
    pub(super) name: String,
    pub(super) parent: Option<usize>,
    pub(super) children: Vec<usize>,
    pub(super) file: PathBuf,
    /// Names of what it defines, modules left out.
    pub(super) items: Vec<String>,
    /// Names that its imports bring into it, each with the path that it stands for.
    pub(super) imports: Vec<(String, Vec<String>)>,
    /// Paths of its glob imports.
    pub(super) globs: Vec<Vec<String>>,
    /// Every path in it.
    pub(super) mentions: Vec<Mention>,
}

/// A path in a module's text.
pub(super) struct Mention {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
}

impl Crate {
    /// Reads the crate whose root file is `file`, and every module that it declares.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let mut tree = Self { modules: vec![] };
        let folder = file.parent().context("a root file in a folder")?;
        let root = tree.add("crate", None, file);
        tree.fill(root, &parse(file)?, folder)?;
        Ok(tree)
    }

    fn add(&mut self, name: &str, parent: Option<usize>, file: &Path) -> usize {
        let id = self.modules.len();
        self.modules.push(Module {
            name: name.to_owned(),
            parent,
            children: vec![],
            file: file.to_path_buf(),
            items: vec![],
            imports: vec![],
            globs: vec![],
            mentions: vec![],
        });
        if let Some(parent) = parent {
            self.modules[parent].children.push(id);
        }
        id
    }

    /// Fills a module with its items; the files of its children are in `folder`.
    fn fill(&mut self, id: usize, items: &[Item], folder: &Path) -> Result<()> {
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            if let Item::Mod(child) = item {
                self.read_child(id, child, folder)?;
                continue;
            }
            let module = &mut self.modules[id];
            if let Item::Use(import) = item {
                module.take_import(import);
            }
            module.items.extend(name(item));
            Mentions(&mut module.mentions).visit_item(item);
        }
        Ok(())
    }

    fn read_child(&mut self, parent: usize, child: &ItemMod, folder: &Path) -> Result<()> {
        let name = child.ident.to_string();
        if let Some((_, items)) = &child.content {
            let file = self.modules[parent].file.clone();
            let id = self.add(&name, Some(parent), &file);
            return self.fill(id, items, &folder.join(name));
        }
        let file = match path_attribute(&child.attrs) {
            // Beside the file that has the attribute, whatever folder its other modules are in.
            Some(path) => self.modules[parent].file.with_file_name(path),
            None => find(folder, &name)?,
        };
        let id = self.add(&name, Some(parent), &file);
        let is_folder_file = file.file_name().is_some_and(|name| name == "mod.rs");
        let folder = if is_folder_file { file.with_file_name("") } else { file.with_extension("") };
        self.fill(id, &parse(&file)?, &folder)
    }

    /// `a::b`, without the crate.
    pub(super) fn path(&self, id: usize) -> String {
        let module = &self.modules[id];
        match module.parent {
            None | Some(0) => module.name.clone(),
            Some(parent) => format!("{}::{}", self.path(parent), module.name),
        }
    }

    /// Where the ways from the root to two modules part: the last common module and the next of each
    /// way; nothing if one way ends there, as a module and those below it are no siblings.
    pub(super) fn siblings(&self, a: usize, b: usize) -> Option<(usize, usize, usize)> {
        let (a, b) = (self.way(a), self.way(b));
        let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        Some((a[common - 1], *a.get(common)?, *b.get(common)?))
    }

    fn way(&self, id: usize) -> Vec<usize> {
        let mut way = self.modules[id].parent.map(|parent| self.way(parent)).unwrap_or_default();
        way.push(id);
        way
    }
}

impl Module {
    fn take_import(&mut self, import: &ItemUse) {
        for (segments, name) in leaves(&import.tree) {
            match name {
                Some(name) => self.imports.push((name, segments)),
                None => self.globs.push(segments),
            }
        }
    }
}

/// The paths of an import with the name that each brings; a glob brings none.
fn leaves(tree: &UseTree) -> Vec<(Vec<String>, Option<String>)> {
    let leaf = |name: String| vec![(vec![name.clone()], Some(name))];
    match tree {
        UseTree::Name(name) => leaf(name.ident.to_string()),
        UseTree::Rename(rename) => {
            vec![(vec![rename.ident.to_string()], Some(rename.rename.to_string()))]
        }
        UseTree::Glob(_) => vec![(vec![], None)],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            let below = leaves(&path.tree).into_iter();
            below.map(|(segments, name)| below_first(&first, segments, name)).collect()
        }
    }
}

/// `first::{self}` stands for `first`.
fn below_first(
    first: &str,
    segments: Vec<String>,
    name: Option<String>,
) -> (Vec<String>, Option<String>) {
    if segments == ["self"] {
        let name = name.map(|name| if name == "self" { first.to_owned() } else { name });
        return (vec![first.to_owned()], name);
    }
    ([vec![first.to_owned()], segments].concat(), name)
}

/// Collects the paths of an item.
struct Mentions<'a>(&'a mut Vec<Mention>);

impl Mentions<'_> {
    /// Paths in the arguments of a macro, which are tokens: what begins with `crate`, `self`, `super`
    /// or a name, and continues with `::`.
    fn take_tokens(&mut self, tokens: TokenStream) {
        let mut segments: Vec<String> = vec![];
        let mut colons = 0;
        let mut line = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut segments, line);
                        line = ident.span().start().line;
                    }
                    segments.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.end(&mut segments, line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.take_tokens(group.stream());
                    }
                }
            }
        }
        self.end(&mut segments, line);
    }

    fn end(&mut self, segments: &mut Vec<String>, line: usize) {
        let segments = std::mem::take(segments);
        if !segments.is_empty() {
            self.0.push(Mention { segments, line });
        }
    }
}

impl<'ast> Visit<'ast> for Mentions<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        let line = import.use_token.span.start().line;
        for (segments, _) in leaves(&import.tree) {
            self.0.push(Mention { segments, line });
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        if path.leading_colon.is_none() {
            self.0.push(Mention { segments, line });
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.take_tokens(call.tokens.clone());
    }
}

fn parse(file: &Path) -> Result<Vec<Item>> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let parsed = syn::parse_file(&text).with_context(|| format!("in {}", file.display()))?;
    Ok(if is_test(&parsed.attrs) { vec![] } else { parsed.items })
}

fn find(folder: &Path, name: &str) -> Result<PathBuf> {
    let name = name.trim_start_matches("r#");
    let places = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
    match places.iter().find(|place| place.is_file()) {
        Some(place) => Ok(place.clone()),
        None => bail!("there is no module {name} in {}", folder.display()),
    }
}

/// `#[path = "…"]`.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

/// `#[cfg(test)]`, `#[cfg(all(test, …))]` or `#[test]`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string().replace(' ', "");
            condition == "test" || condition.starts_with("all(test,")
        }
        _ => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name that an item defines.
fn name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::TraitAlias(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        _ => return None,
    })
}

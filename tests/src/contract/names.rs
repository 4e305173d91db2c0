//! Type names must be unique: of two types with one name, the document would keep only the schema that was collected last, and
//! use it for both.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::tests::document;

/// The directories of the crates whose types are in the document.
const ROOMS: [&str; 2] = ["gateway/src", "shared/domain/src"];

/// Every Rust file in a directory and its subdirectories.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory of sources");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// The types of a source that can be in the document: those that derive a schema, and enumerations made by `named!`.
fn schema_types(source: &str) -> impl Iterator<Item = &str> {
    let derived = source.split("#[derive(").skip(1).filter_map(|rest| {
        let (traits, item) = rest.split_once(")]")?;
        let mut code = item.lines().filter(|line| !line.trim_start().starts_with("//"));
        let name = code.find_map(|line| line.split_once("struct ").or(line.split_once("enum ")))?.1;
        traits.split(',').any(|name| name.trim() == "ToSchema").then_some(name)
    });
    let enumerations = source.split("named! {").skip(1);
    let enumerations = enumerations.filter_map(|rest| rest.lines().map(str::trim).find(|line| line.ends_with('{')));
    derived.chain(enumerations).filter_map(|name| name.split(|c: char| !c.is_alphanumeric()).next())
}

#[test]
fn no_two_types_of_the_document_share_a_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeMap::new();
    for path in ROOMS.iter().flat_map(|room| sources(&root.join(room))) {
        let source = fs::read_to_string(&path).expect("a source is text");
        for name in schema_types(&source) {
            if let Some(other) = found.insert(name.to_owned(), path.clone()) {
                panic!("{name} is a type of {} and of {}", other.display(), path.display());
            }
        }
    }
    // Ids, handles and variants of unions have handwritten schemas or names.
    let document = document();
    let names = document["components"]["schemas"].as_object().expect("schemas");
    let known = names.keys().filter(|name| found.contains_key(*name)).count();
    assert!(known * 5 > names.len() * 3, "of {} names of the document only {known} were found", names.len());
}

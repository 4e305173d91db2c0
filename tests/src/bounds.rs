//! The import law of the house (house.md, Import law), from `cargo metadata`: who may import whom.
//!
//! Dependencies are judged, dev-dependencies are not: tests may import anything.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// What each room may import of the house. A room that is not listed may not exist.
const LAW: &[(&str, &[&str])] = &[
    // Leaves.
    ("egress", &[]),
    ("raster", &[]),
    ("service", &[]),
    // Values and the functions on them.
    ("domain", &[]),
    ("canvas", &["domain"]),
    // Doors to the outside; none knows another.
    ("db", &["domain"]),
    ("broker", &["domain"]),
    ("blob", &[]),
    ("cache", &[]),
    ("providers", &["domain", "egress", "service"]),
    // How work moves.
    ("spine", &["domain", "db", "broker", "service"]),
    // What the workers that make things have in common.
    ("workshop", &["domain", "db", "spine", "blob", "cache", "canvas", "providers", "raster", "egress", "service"]),
    // Processes; none knows another. `raster` in the gateway reads headers, never pixels.
    ("gateway", &["domain", "db", "spine", "blob", "cache", "canvas", "providers", "raster", "egress", "service"]),
    (
        "image-worker",
        &["domain", "db", "spine", "blob", "canvas", "providers", "raster", "egress", "service", "workshop"],
    ),
    ("video-worker", &["domain", "db", "spine", "providers", "raster", "egress", "service", "workshop"]),
    ("webhook-dispatcher", &["domain", "db", "spine", "egress", "service"]),
    // A client of the service like any other: it knows the contract alone.
    ("demo", &[]),
    // For tests only.
    ("testkit", &[]),
];

/// Libraries with one door each: only these rooms may open them.
const DOORS: &[(&str, &[&str])] = &[
    ("sqlx", &["db", "testkit"]),
    ("lapin", &["broker"]),
    ("redis", &["cache"]),
    ("object_store", &["blob"]),
    // In blob it only switches on the TLS of object_store's own client, which speaks to the operator's store; the demo speaks to
    // the service from outside. In service it speaks to the operator's collector, which callers cannot choose.
    ("reqwest", &["egress", "blob", "demo", "service"]),
    ("turbojpeg", &["raster"]),
    ("turbojpeg-sys", &["raster"]),
    ("openh264", &["video-worker"]),
    ("image", &[]),
    ("testkit", &[]),
];

/// May import everything.
const TESTS: &str = "e2e";

#[test]
fn rooms_import_what_the_law_allows_and_nothing_else() {
    let law: BTreeMap<&str, &[&str]> = LAW.iter().copied().collect();
    let rooms = rooms();
    let names: BTreeSet<&str> = rooms.keys().map(String::as_str).collect();
    let mut breaches = Vec::new();
    for (room, imports) in rooms.iter().filter(|(room, _)| *room != TESTS) {
        let Some(allowed) = law.get(room.as_str()) else {
            breaches.push(format!("{room} has no place in the law"));
            continue;
        };
        // A permission that nobody uses is an invitation.
        breaches.extend(
            allowed
                .iter()
                .filter(|it| !imports.contains(**it))
                .map(|it| format!("{room} may import {it} and does not")),
        );
        let inner = imports.iter().filter(|import| names.contains(import.as_str()));
        breaches.extend(
            inner.filter(|import| !allowed.contains(&import.as_str())).map(|import| format!("{room} imports {import}")),
        );
    }
    assert!(breaches.is_empty(), "the import law of house.md is broken:\n{}", breaches.join("\n"));
}

#[test]
fn libraries_are_used_through_their_doors() {
    let mut breaches = Vec::new();
    for (room, imports) in rooms().iter().filter(|(room, _)| *room != TESTS) {
        for (library, doors) in DOORS {
            if imports.contains(*library) && !doors.contains(&room.as_str()) {
                breaches.push(format!("{room} imports {library}"));
            }
        }
    }
    assert!(breaches.is_empty(), "a library is used beside its door:\n{}", breaches.join("\n"));
}

/// Every crate of the workspace with its dependencies, those for building included and those for tests left out.
fn rooms() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("runs cargo metadata");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("a list of dependencies");
            let imports = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
            let name = |value: &Value| value["name"].as_str().expect("a name").to_owned();
            (name(package), imports.map(name).collect())
        })
        .collect()
}

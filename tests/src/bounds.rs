//! The import rules between crates (docs/architecture.md#imports), checked with `cargo metadata`.
//!
//! Only normal and build dependencies are checked. Tests may import anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates of the workspace that each crate may import. A crate must be listed.
const ALLOWED: &[(&str, &[&str])] = &[
    // Crates without dependencies in the workspace.
    ("decoder", &[]),
    ("egress", &["service"]),
    ("film", &[]),
    ("jpeg", &[]),
    ("service", &[]),
    // Values, and functions on them.
    ("domain", &[]),
    ("canvas", &["domain"]),
    // Pixels, and the embedded runtime.
    ("raster", &["jpeg"]),
    ("embedded", &["domain", "raster"]),
    ("frames", &["film", "raster"]),
    ("actions", &["domain", "raster"]),
    // Access to external systems. These crates do not import each other.
    ("db", &["domain"]),
    ("broker", &["domain"]),
    ("blob", &[]),
    ("cache", &[]),
    ("providers", &["domain", "egress", "service"]),
    ("identity", &["domain", "egress", "service"]),
    // The task queue.
    ("taskqueue", &["domain", "db", "broker", "service"]),
    // The work of the service, for any caller.
    ("app", &["domain", "db", "canvas", "service"]),
    // The common part of the media workers.
    (
        "worker",
        &[
            "domain",
            "app",
            "db",
            "taskqueue",
            "blob",
            "cache",
            "decoder",
            "film",
            "frames",
            "providers",
            "raster",
            "egress",
            "service",
        ],
    ),
    // Processes, which do not import each other. The gateway uses `raster` for headers and metadata of images only, never for
    // pixels, and `film` for the boxes of videos.
    (
        "gateway",
        &[
            "domain",
            "actions",
            "app",
            "db",
            "taskqueue",
            "blob",
            "cache",
            "canvas",
            "client",
            "tools",
            "providers",
            "raster",
            "egress",
            "film",
            "identity",
            "service",
        ],
    ),
    (
        "image-worker",
        &[
            "domain",
            "actions",
            "app",
            "db",
            "taskqueue",
            "blob",
            "canvas",
            "decoder",
            "providers",
            "raster",
            "embedded",
            "egress",
            "service",
            "worker",
        ],
    ),
    (
        "video-worker",
        &[
            "domain",
            "app",
            "db",
            "taskqueue",
            "decoder",
            "providers",
            "raster",
            "embedded",
            "egress",
            "service",
            "worker",
        ],
    ),
    ("webhook-dispatcher", &["domain", "db", "taskqueue", "blob", "cache", "providers", "egress", "service"]),
    // Clients of the service, which know nothing but the contract.
    ("client", &["domain"]),
    ("cli", &["client", "domain", "tools"]),
    ("tools", &["client", "domain"]),
    ("demo", &["client"]),
    // Test support.
    ("testkit", &[]),
];

/// Libraries that only these crates may import.
const RESTRICTED: &[(&str, &[&str])] = &[
    ("sqlx", &["db", "testkit"]),
    ("lapin", &["broker"]),
    ("redis", &["cache"]),
    ("object_store", &["blob"]),
    // blob only enables the TLS of object_store's own client, which connects to the operator's store. client connects to
    // the service from outside. service connects to the operator's collector, which callers cannot choose.
    ("reqwest", &["egress", "blob", "client", "service"]),
    ("ring", &["identity", "testkit"]),
    ("rmcp", &["tools"]),
    ("turbojpeg", &["raster"]),
    ("turbojpeg-sys", &["raster"]),
    ("landlock", &["decoder"]),
    ("seccompiler", &["decoder"]),
    ("openh264", &["embedded"]),
    ("openh264-sys2", &["embedded"]),
    ("rusty_h264-decoder", &["frames"]),
    ("image", &["raster"]),
    ("rav1d", &["raster"]),
    ("testkit", &[]),
];

/// The crate that may import everything.
const TESTS: &str = "e2e";

#[test]
fn crates_import_only_what_is_allowed() {
    let rules: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let crates = crates();
    let names: BTreeSet<&str> = crates.keys().map(String::as_str).collect();
    let mut violations = Vec::new();
    for (name, imports) in crates.iter().filter(|(name, _)| *name != TESTS) {
        let Some(allowed) = rules.get(name.as_str()) else {
            violations.push(format!("{name} is not listed"));
            continue;
        };
        // A permission that is not used must be removed.
        violations.extend(
            allowed
                .iter()
                .filter(|it| !imports.contains(**it))
                .map(|it| format!("{name} may import {it} and does not")),
        );
        let inner = imports.iter().filter(|import| names.contains(import.as_str()));
        violations.extend(
            inner.filter(|import| !allowed.contains(&import.as_str())).map(|import| format!("{name} imports {import}")),
        );
    }
    assert!(violations.is_empty(), "the import rules of docs/architecture.md are broken:\n{}", violations.join("\n"));
}

#[test]
fn libraries_are_imported_only_by_their_crates() {
    let mut violations = Vec::new();
    for (name, imports) in crates().iter().filter(|(name, _)| *name != TESTS) {
        for (library, importers) in RESTRICTED {
            if imports.contains(*library) && !importers.contains(&name.as_str()) {
                violations.push(format!("{name} imports {library}"));
            }
        }
    }
    assert!(violations.is_empty(), "a library is imported by a crate that may not use it:\n{}", violations.join("\n"));
}

/// Routes do not import routes of other resources: what they share is in `app`, in `domain` or elsewhere in the gateway.
#[test]
fn routes_do_not_import_routes_of_other_resources() {
    let routes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gateway/src/routes");
    let entries = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path()).collect()
    };
    let stem = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let resources: Vec<String> = entries(&routes).iter().map(|path| stem(path)).collect();
    let (mut paths, mut violations) = (entries(&routes), Vec::new());
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(entries(&path));
            continue;
        }
        let file = path.strip_prefix(&routes).expect("is below the routes");
        let own = stem(Path::new(file.iter().next().expect("a name")));
        // The number of `super` that leads to the routes.
        let depth = file.iter().count() - usize::from(file.ends_with("mod.rs"));
        let source = fs::read_to_string(&path).expect("is UTF-8");
        for other in resources.iter().filter(|other| **other != own) {
            let imports = [format!("routes::{other}::"), format!("{}{other}::", "super::".repeat(depth))];
            let is_breach = |line: &&str| imports.iter().any(|import| line.contains(import));
            violations
                .extend(source.lines().filter(is_breach).map(|line| format!("{}: {}", file.display(), line.trim())));
        }
    }
    assert!(violations.is_empty(), "routes import routes of other resources:\n{}", violations.join("\n"));
}

/// A node or connection that is stored without a ref has none until somebody loads the canvas, as one of the previous release.
#[test]
fn every_statement_that_stores_nodes_or_connections_stores_their_refs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = ["gateway/src", "image-worker/src", "video-worker/src", "webhook-dispatcher/src", "shared"];
    let mut paths: Vec<PathBuf> = sources.iter().map(|source| root.join(source)).collect();
    let mut found = 0;
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let is_product = |path: &PathBuf| !path.ends_with("tests") && !path.ends_with("migrations");
            let entries = fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path());
            paths.extend(entries.filter(is_product));
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") || path.ends_with("tests.rs") {
            continue;
        }
        let source = fs::read_to_string(&path).expect("is UTF-8");
        let product = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for table in ["INSERT INTO nodes (", "INSERT INTO connections ("] {
            for columns in product.split(table).skip(1) {
                let columns = columns.split(')').next().unwrap_or_default();
                assert!(columns.split(',').any(|column| column.trim() == "ref"), "{}: {columns}", path.display());
                found += 1;
            }
        }
    }
    assert_eq!(found, 2, "one statement stores nodes, and the same one connections");
}

/// Every crate of the workspace with its normal and build dependencies, without the `canvas-` of package names.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
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
            let name = |value: &Value| value["name"].as_str().expect("a name").trim_start_matches("canvas-").to_owned();
            (name(package), imports.map(name).collect())
        })
        .collect()
}

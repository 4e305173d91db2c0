//! Checks of the additions for a kind of provider that the compiler cannot require (`docs/development.md#add-a-provider`).

use domain::model::ProviderKind;

use crate::harness::vendors;

const PROTOCOLS: &str = include_str!("../../../../docs/reference/providers.md");
const KINDS: &str = include_str!("../../../../docs/reference/models.md");

#[test]
fn each_third_party_has_a_simulator() {
    for kind in ProviderKind::third_parties() {
        assert!(vendors().any(|vendor| vendor.name() == kind.as_str()), "{kind}");
    }
}

#[test]
fn each_kind_is_documented() {
    let section = |heading: &str| {
        let start = PROTOCOLS.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{heading} is missing"));
        let rest = &PROTOCOLS[start + heading.len() + 1..];
        &rest[..rest.find("\n## ").unwrap_or(rest.len())]
    };
    for kind in ProviderKind::ALL {
        let row = format!("\n| `{kind}`");
        assert!(section("## Overview").contains(&row), "{kind} has no row in the overview");
        assert!(section("### Image limits").contains(&row), "{kind} has no limit of an image");
        assert!(!section(&format!("## {kind}")).trim().is_empty(), "{kind}");
        let row = format!("\n| `{kind}` | {} |", kind.label());
        assert!(KINDS.contains(&row), "{kind} has no row in docs/reference/models.md");
    }
}

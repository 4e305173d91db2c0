//! The documents and images that the guides consist of, embedded.

/// Documents that belong together.
pub struct Group {
    pub title: &'static str,
    pub documents: &'static [Document],
}

/// A Markdown document.
pub struct Document {
    /// Its path in the repository.
    pub file: &'static str,
    pub text: &'static str,
}

impl Document {
    /// Its first heading, which is its first line.
    pub fn title(&self) -> String {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ").replace('`', "")
    }
}

/// An image that a document shows: its path in the repository, and its bytes.
pub type Image = (&'static str, &'static [u8]);

macro_rules! repository {
    ($file:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../", $file)
    };
}

macro_rules! groups {
    ($($title:literal: $($file:literal),+;)+) => {
        &[$(Group {
            title: $title,
            documents: &[$(Document { file: $file, text: include_str!(repository!($file)) }),+],
        }),+]
    };
}

macro_rules! images {
    ($($file:literal),+) => {
        &[$(($file, include_bytes!(repository!($file)))),+]
    };
}

/// The documents in the order in which they are listed. Left out is the page of all screenshots, which alone would take several megabytes.
#[rustfmt::skip]
pub static GROUPS: &[Group] = groups! {
    "Start":
        "docs/README.md",
        "docs/tutorial.md",
        "docs/concepts.md",
        "docs/glossary.md",
        "docs/comparison.md";
    "Guides":
        "docs/guides/console.md",
        "docs/guides/generation.md",
        "docs/guides/recipes.md",
        "docs/guides/imports.md",
        "docs/guides/agents.md",
        "docs/guides/clients.md",
        "docs/guides/webhooks.md",
        "docs/guides/embedding.md",
        "docs/guides/connect-an-agent.md",
        "docs/guides/single-sign-on.md",
        "docs/guides/administration.md",
        "docs/guides/fair-shares.md";
    "Reference":
        "docs/reference/README.md",
        "docs/reference/authentication.md",
        "docs/reference/signin.md",
        "docs/reference/oauth.md",
        "docs/reference/conventions.md",
        "docs/reference/errors.md",
        "docs/reference/limits.md",
        "docs/reference/canvases.md",
        "docs/reference/operations.md",
        "docs/reference/findings.md",
        "docs/reference/events.md",
        "docs/reference/assets.md",
        "docs/reference/elements.md",
        "docs/reference/imports.md",
        "docs/reference/actions.md",
        "docs/reference/images.md",
        "docs/reference/videos.md",
        "docs/reference/recipes.md",
        "docs/reference/jobs.md",
        "docs/reference/webhooks.md",
        "docs/reference/models.md",
        "docs/reference/providers.md",
        "docs/reference/status.md",
        "docs/reference/tools.md",
        "docs/reference/canvas.md",
        "docs/reference/console.md",
        "docs/reference/campaigns.md",
        "docs/reference/configuration.md",
        "docs/reference/command-line.md",
        "docs/reference/administration.md";
    "Operation":
        "deploy/README.md",
        "deploy/UPGRADING.md",
        "deploy/RUNBOOK.md",
        "deploy/SCALE.md",
        "SECURITY.md",
        "CHANGELOG.md";
    "Inside the project":
        "docs/architecture.md",
        "docs/reliability.md",
        "docs/benchmarks.md",
        "docs/development.md",
        "docs/adr/README.md",
        "docs/adr/0001-transactional-outbox.md",
        "docs/adr/0002-wake-up-messages.md",
        "docs/adr/0003-leases-and-fencing-tokens.md",
        "docs/adr/0004-idempotency-keys.md",
        "docs/adr/0005-revision-per-canvas.md",
        "docs/adr/0006-provider-submits.md",
        "docs/adr/0007-master-key-ring.md",
        "docs/adr/0008-egress-guard-with-pinned-addresses.md",
        "docs/adr/0009-own-jpeg-encoder.md",
        "docs/adr/0010-native-codecs.md",
        "docs/adr/0011-embedded-runtime.md",
        "docs/adr/0012-deterministic-preview-tokens.md",
        "docs/adr/0013-keyset-cursors.md",
        "docs/adr/0014-contract-generated-from-types.md",
        "docs/adr/0015-results-durable-before-succeeded.md",
        "docs/adr/0016-low-water-marks.md",
        "docs/adr/0017-test-tiers-and-real-services.md",
        "docs/adr/0018-decoders.md",
        "docs/adr/0019-budgets-behind-the-account-lock.md",
        "docs/adr/0020-own-authorization-server.md";
};

/// What the documents show.
pub static IMAGES: &[Image] = images! {
    "docs/images/console/canvases-light.jpg",
    "docs/images/console/board-light.jpg",
    "docs/images/console/action-dark.jpg",
    "docs/images/console/make-light.jpg",
    "docs/images/console/findings-light.jpg",
    "docs/images/console/tokens-light.jpg",
    "docs/images/console/recipes-light.jpg",
    "docs/images/console/elements-light.jpg",
    "docs/images/console/viewer-light.jpg",
    "docs/images/console/runs-light.jpg",
    "docs/images/console/assets-light.jpg"
};

/// All documents, in their order.
pub fn documents() -> impl Iterator<Item = &'static Document> {
    GROUPS.iter().flat_map(|group| group.documents)
}

//! Imports: one public picture, or the gallery of a product page, brought onto a canvas (specification, Product reference
//! import result; decisions 14).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::graph::named;
use crate::id::{AssetId, NodeId};

/// What is to be brought, by itself right: the URL has passed the egress guard by its form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Request {
    /// One picture into one node.
    Image {
        /// Where it is.
        url: String,
        /// The node's title; none: the file's name.
        title: Option<String>,
        /// Where the node's left edge lies; none: at the first free spot.
        x: Option<f64>,
        /// Where its top edge lies; none: at the first free spot.
        y: Option<f64>,
    },
    /// The gallery of a page into one Section.
    Product {
        /// The page.
        url: String,
        /// The variant wanted, `key=value`.
        selector: Option<String>,
        /// The Section's title.
        title: String,
    },
}

impl Request {
    /// The field of the request that names what is fetched.
    pub const fn url_field(&self) -> &'static str {
        match self {
            Self::Image { .. } => "imageUrl",
            Self::Product { .. } => "productPageUrl",
        }
    }
}

/// What came of an import; kept with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// Pictures stand on the canvas.
    Imported(Imported),
    /// A person has to decide or to look; nothing was made.
    Review(Review),
    /// It cannot be done; nothing was made.
    Failed(Failure),
}

/// Pictures on a canvas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The revision that they made.
    pub revision: String,
    /// In the order of the page; exactly one of an image import.
    pub images: Vec<Image>,
    /// What a product import tells beyond.
    pub pack: Option<Pack>,
}

/// One picture that was brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// The plain id of its asset; the owner is the canvas's.
    pub asset: AssetId,
    /// The node that shows it.
    pub node: NodeId,
    /// The node's title.
    pub title: String,
    /// `image/png`, `image/jpeg`, `image/webp` or `image/gif`.
    pub media_type: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Of the file.
    pub bytes: u64,
    /// Where its bytes came from, redirects followed.
    pub source_url: String,
}

/// A Section of pictures of one product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pack {
    /// The Section.
    pub section: NodeId,
    /// Its title.
    pub title: String,
    /// The page that they are from.
    pub page: ProductPage,
    /// The variant that they show.
    pub variant: Variant,
    /// How they were found.
    pub discovery: Discovery,
}

/// Why nothing was imported that a person may yet import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Review {
    /// Why.
    pub reason: ReviewReason,
    /// The page.
    pub page: ProductPage,
    /// What is known of variants.
    pub variant: Variant,
    /// What was found.
    pub discovery: Discovery,
}

named! {
    /// What a person has to decide or to look at (specification, Product reference import result).
    ReviewReason {
        /// The selector cannot be tied to pictures of the page.
        VariantEvidenceUnavailable = "variant_evidence_unavailable",
        /// The page shows several variants in different pictures, and no selector was sent.
        VariantSelectionRequired = "variant_selection_required",
        /// The page names no picture of a product.
        NoGalleryImagesDiscovered = "no_gallery_images_discovered",
        /// None of the pictures that it names can be used.
        NoSupportedRasterImages = "no_supported_raster_images",
    }
}

named! {
    /// How pictures and variant belong together.
    Evidence {
        /// The page's own data ties them.
        Exact = "exact",
        /// No variant was asked for, and the page has no choice of pictures.
        NotRequested = "not_requested",
        /// One has to be asked for.
        SelectionRequired = "selection_required",
        /// Nothing ties the variant that was asked for to a picture.
        Unavailable = "unavailable",
    }
}

/// A product's page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProductPage {
    /// As it was asked for.
    #[schema(format = Uri)]
    pub url: String,
    /// Where redirects led.
    #[schema(format = Uri)]
    pub resolved_url: String,
}

/// A variant of a product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Variant {
    /// As it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub selector: Option<String>,
    /// How it and the pictures belong together.
    pub evidence: Evidence,
}

/// How the pictures of a page were found. Every picture that was discovered was imported, skipped, or is one more than a
/// pack holds; the last kind counts as skipped and sets `limited`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// Different pictures that the page names.
    #[schema(minimum = 0)]
    pub discovered_candidate_count: usize,
    /// Those that were not imported.
    #[schema(minimum = 0)]
    pub skipped_image_count: usize,
    /// Whether more than 12 were left, or a budget cut the search (decisions 14.3).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub limited: bool,
}

/// Why an import cannot be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of trouble.
    pub kind: FailureKind,
    /// The field of the request that it is about.
    pub field: String,
    /// For people; names no address of a network.
    pub message: String,
}

named! {
    /// What kind of trouble an import met; each is one status of the answer (decisions 14.2).
    FailureKind {
        /// The other side answered an error, or could not be reached: 502.
        Upstream = "upstream",
        /// The other side took too long: 504.
        Timeout = "timeout",
        /// What is there, or where it leads, cannot be imported: 422.
        Unprocessable = "unprocessable",
        /// The account may no longer write to the canvas: 403.
        Forbidden = "forbidden",
        /// The service itself failed: 500.
        Internal = "internal",
    }
}

impl Outcome {
    /// Whether it stands for its key for good; any other outcome frees the key once it was received (decisions 1.12).
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Imported(_))
    }
}

//! Imports: one public image, or the gallery of a product page, brought onto a canvas. Rules:
//! `docs/reference/imports.md`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::asset::ImageMediaType;
use crate::constant::True;
use crate::graph::named;
use crate::id::{AssetHandle, AssetId, CanvasHandle, NodeHandle, NodeId};
use crate::known::{self, Name};

/// The source of an import. The form of the URL has passed the egress guard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Request {
    /// Imports one image into one node.
    Image {
        /// URL of the image.
        url: String,
        /// Title of the node; defaults to the file name.
        title: Option<String>,
        /// Left edge of the node; defaults to the first free spot.
        x: Option<f64>,
        /// Top edge of the node; defaults to the first free spot.
        y: Option<f64>,
    },
    /// Imports the gallery of a page into one Section.
    Product {
        /// URL of the page.
        url: String,
        /// The requested variant, `key=value`.
        selector: Option<String>,
        /// Title of the Section.
        title: String,
    },
}

impl Request {
    /// The request field that holds the URL.
    pub const fn url_field(&self) -> &'static str {
        match self {
            Self::Image { .. } => "imageUrl",
            Self::Product { .. } => "productPageUrl",
        }
    }
}

/// Outcome of an import; stored with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ImportOutcome {
    /// Images were imported.
    Imported(Imported),
    /// A person must decide; nothing was imported.
    Review(Review),
    /// The import failed; nothing was imported.
    Failed(Failure),
}

/// Imported images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The revision that the import created.
    pub revision: String,
    /// Images in the order of the page; exactly one for an image import.
    pub images: Vec<Image>,
    /// Additional members of the report of a product import.
    pub pack: Option<Pack>,
}

/// An imported image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// Plain id of its asset; the owner is the canvas's.
    pub asset: AssetId,
    /// The node that shows it.
    pub node: NodeId,
    /// Title of the node.
    pub title: String,
    /// `image/png`, `image/jpeg`, `image/webp` or `image/gif`.
    pub media_type: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// URL of the file after redirects.
    pub source_url: String,
}

/// A Section with the images of one product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pack {
    /// Node of the Section.
    pub section: NodeId,
    /// Title of the Section.
    pub title: String,
    pub page: ProductPage,
    /// The variant that the images show.
    pub variant: Variant,
    /// How the images were found.
    pub discovery: Discovery,
}

/// Why nothing was imported although a person can still import something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Review {
    pub reason: ReviewReason,
    pub page: ProductPage,
    /// Evidence about variants.
    pub variant: Variant,
    /// What was found.
    pub discovery: Discovery,
}

named! {
    /// The decision or check that a person must make.
    ReviewReason {
        /// Nothing on the page connects the selector with images.
        VariantEvidenceUnavailable = "variant_evidence_unavailable",
        /// The page shows several variants in different images, and no selector was sent.
        VariantSelectionRequired = "variant_selection_required",
        /// The page names no product image.
        NoGalleryImagesDiscovered = "no_gallery_images_discovered",
        /// None of the named images can be used.
        NoSupportedRasterImages = "no_supported_raster_images",
    }
}

named! {
    /// How the images relate to the variant.
    Evidence {
        /// The page's own data connects them.
        Exact = "exact",
        /// No variant was requested, and the page has one set of images.
        NotRequested = "not_requested",
        /// The request must select a variant.
        SelectionRequired = "selection_required",
        /// Nothing connects the requested variant with an image.
        Unavailable = "unavailable",
    }
}

/// A product page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProductPage {
    /// URL as requested.
    #[schema(format = Uri)]
    pub url: String,
    /// URL after redirects.
    #[schema(format = Uri)]
    pub resolved_url: String,
}

/// A variant of a product.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Variant {
    /// How the images relate to the variant.
    pub evidence: Evidence,
    /// Selector as requested, `key=value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// How the images of a page were found. Every discovered image was either imported or skipped. Images beyond the
/// limit of one import count as skipped and set `limited`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// Number of images that the page names. Their files decide which are the same.
    #[schema(minimum = 0)]
    pub discovered_candidate_count: usize,
    /// Number of discovered images that were not imported.
    #[schema(minimum = 0)]
    pub skipped_image_count: usize,
    /// Why they were not imported; the counts add up to `skippedImageCount`.
    #[serde(default)]
    #[schema(required = true)]
    pub skipped: Vec<Skipped>,
    /// `true` if more than 12 images remained or a budget ended the search.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub limited: bool,
}

/// Images that were not imported for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Skipped {
    /// Why they were not imported.
    pub reason: SkipReason,
    /// Number of images.
    #[schema(minimum = 1)]
    pub count: usize,
}

named! {
    /// Why a discovered image was not imported.
    SkipReason {
        /// It is outside of the gallery: in a header, among other products, or in the text of a page with a gallery.
        OutsideGallery = "outside_gallery",
        /// The page shows it as small as an icon, or its name says that it is an icon, a logo or a placeholder.
        Icon = "icon",
        /// It shows another variant, or the variant is not known.
        Variant = "variant",
        /// A side has less than 200 pixels.
        TooSmall = "too_small",
        /// It is the same as another image, in this or a smaller size.
        Duplicate = "duplicate",
        /// No file is a PNG, JPEG, WebP or GIF within the limits that can be decoded.
        Unusable = "unusable",
        /// No file could be fetched.
        Unreachable = "unreachable",
        /// The limit of images, candidates or time was reached first.
        Limit = "limit",
    }
}

/// An imported image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedImage {
    /// Handle of the asset.
    pub asset_id: AssetHandle,
    /// Handle of the node.
    #[schema(value_type = NodeHandle)]
    pub node_id: String,
    /// Media type, detected from the bytes.
    #[schema(value_type = ImageMediaType)]
    pub media_type: String,
    /// Width in pixels.
    #[schema(minimum = 1)]
    pub width: u32,
    /// Height in pixels.
    #[schema(minimum = 1)]
    pub height: u32,
    /// Size of the file in bytes.
    #[schema(minimum = 1, maximum = 52_428_800)]
    pub bytes: u64,
    /// URL that the bytes came from, after redirects.
    #[schema(format = Uri)]
    pub source_image_url: String,
    /// Preview URL, a short-lived capability for this image; do not store it.
    #[schema(format = Uri)]
    pub preview_url: String,
    /// Markdown image link.
    pub markdown: String,
}

/// Result of an image import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageImport {
    /// Handle of the canvas.
    pub canvas_id: CanvasHandle,
    /// Canvas revision that the import created.
    pub canvas_revision: String,
    /// URL of the canvas for people.
    #[schema(format = Uri)]
    pub canvas_url: String,
    /// `true` if the response repeats that of an earlier, equal request.
    pub replayed: bool,
    /// The imported image.
    pub image: ImportedImage,
}

/// Outcome of a product import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ProductImport {
    /// The pack is on the canvas.
    Succeeded(ImportedPack),
    /// A person has to decide or check first; nothing was imported.
    ReviewRequired(ImportReview),
}

/// An imported pack of images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedPack {
    /// `true` if the response repeats that of an earlier, equal request.
    pub replayed: bool,
    /// Handle of the canvas.
    pub canvas_id: CanvasHandle,
    /// Canvas revision that the import created.
    pub canvas_revision: String,
    /// URL of the canvas for people.
    #[schema(format = Uri)]
    pub canvas_url: String,
    /// The product page.
    pub page: ProductPage,
    /// The variant that the images show.
    pub variant: Variant,
    /// The Section that holds the images.
    pub pack: PackSection,
    /// Imported images, in the order of the page.
    #[schema(min_items = 1, max_items = 12)]
    pub images: Vec<ImportedImage>,
    /// How the images were found.
    #[serde(deserialize_with = "known::or_default")]
    pub discovery: Discovery,
}

/// The Section of a pack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackSection {
    /// Plain id of the Section node, which its members carry as `metadata.sectionId`.
    pub section_id: NodeId,
    /// Title of the Section.
    pub title: String,
    /// Number of images in the Section.
    #[schema(minimum = 1, maximum = 12)]
    pub image_count: usize,
}

/// An import that a person has to decide on or check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportReview {
    /// Always `true`.
    #[schema(value_type = True, inline)]
    pub review_required: bool,
    /// Why a person has to decide or check.
    #[schema(value_type = ReviewReason)]
    pub reason: Name<ReviewReason>,
    /// Handle of the canvas.
    pub canvas_id: CanvasHandle,
    /// The product page.
    pub page: ProductPage,
    /// The variants of the page.
    pub variant: Variant,
    /// The images that were found on the page.
    #[serde(deserialize_with = "known::or_default")]
    pub discovery: Discovery,
}

/// Why an import failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// The request field that it is about.
    pub field: String,
    /// Message for people. It contains no network address.
    pub message: String,
    /// Present if the storage of the canvas's owner is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Full>,
    /// The image is a HEIC, for which there is no decoder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_heic: bool,
}

/// A storage without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Full {
    /// Stored and maximum bytes, if the import is the owner's.
    pub own: Option<(i64, i64)>,
}

named! {
    /// Kind of a failed import; each kind is one response status.
    FailureKind {
        /// The other server answered with an error or could not be reached: 502.
        Upstream = "upstream",
        /// The other server took too long: 504.
        Timeout = "timeout",
        /// The content, or the target of a redirect, cannot be imported: 422.
        Unprocessable = "unprocessable",
        /// The account may no longer write to the canvas: 403.
        Forbidden = "forbidden",
        /// The service failed: 500.
        Internal = "internal",
    }
}

impl ImportOutcome {
    /// Returns `true` if the outcome keeps its idempotency key. Any other outcome releases the key once a client has received it.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Imported(_))
    }
}

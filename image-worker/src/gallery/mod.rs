//! Gallery discovery: selects the images of a page that show its product
//! (docs/reference/imports.md#gallery-discovery).
//!
//! A pure function of a page's text and address.
//!
//! - **Order.** Images are ordered by source: JSON-LD, microdata, embedded product data, Open
//!   Graph, then the images in the body. If the body has a recognizable gallery, only the images
//!   of the gallery are used. Images that the data names are used whatever their names are.
//! - **Duplicates.** The files of one element are one candidate, the largest first; so are elements
//!   that name the same file. Other duplicates are recognized by their files, after they were fetched.
//! - **Variants.** Only the page's own data assigns images to variants; nothing is guessed.

mod address;
mod charset;
mod embedded;
mod json;
mod linked;
mod page;
mod product;
mod rules;
mod srcset;
mod tree;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::import::{Evidence, ReviewReason, SkipReason};
use url::Url;

use page::{Finds, PageImage, Region};
use product::{ADDRESSES_MAX, Product, Variant};

pub use charset::{is_markup, text};

/// Files of one image that are tried before that of `src`, the largest first.
const FILES_MAX: usize = 3;

/// Maximum number of files that are kept per image.
const FILES_KEPT: usize = 16;

/// The memory of an address besides its text, in bytes.
const ADDRESS_BYTES: usize = 2 * size_of::<Url>();

/// Maximum memory of the addresses that are kept per page, in bytes. A short one in the page's text
/// becomes as long as the page's own address.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum memory of what is kept of a page whatever its size, in bytes: images, variants and
/// addresses.
const KEPT_BYTES_MAX: u64 = 40 * 1024 * 1024;

/// The memory to reserve for reading a page of `page_bytes`, in bytes: copies of its text, the JSON
/// that is parsed at the same time, and what is kept.
pub fn memory_bytes(page_bytes: usize) -> u64 {
    16 * page_bytes as u64 + json::WEIGHT_MAX + KEPT_BYTES_MAX
}

/// The images and variants of a page.
#[derive(Debug, Default)]
pub struct Gallery {
    /// Every image that the page names, those of its product first.
    candidates: Vec<Candidate>,
    /// The candidates by their files.
    by_url: HashMap<Url, usize>,
    /// Memory of the addresses.
    bytes: usize,
    base: Option<Url>,
    linked: Product,
    embedded: Product,
}

/// An image with its files of different sizes.
#[derive(Debug, Default)]
struct Candidate {
    /// The files, the largest first.
    files: Vec<Url>,
    /// The file that is tried last. Until a script loads the image, it is a placeholder that many images may share.
    src: Option<Url>,
    /// The reason not to use it; `None` if it shows the product.
    skip: Option<SkipReason>,
}

/// The number of skipped images by reason.
pub type Skips = BTreeMap<SkipReason, usize>;

/// The images to fetch.
#[derive(Debug, PartialEq)]
pub struct Choice {
    /// For each image its files, the largest first.
    pub images: Vec<Vec<Url>>,
    /// The evidence that the images belong to the requested variant.
    pub evidence: Evidence,
    /// The numbers of the other images of the page.
    pub skipped: Skips,
}

/// The review that is needed before anything is fetched.
#[derive(Debug, PartialEq)]
pub struct ReviewNeeded {
    /// The decision or check that a person must make.
    pub reason: ReviewReason,
    /// The evidence for variants in the page.
    pub evidence: Evidence,
    /// The numbers of all images of the page.
    pub skipped: Skips,
}

impl Gallery {
    /// Reads a page that was fetched from `url`.
    pub fn parse(html: &str, url: &Url) -> Self {
        let finds = Finds::parse(html);
        let base = finds.base.as_deref().filter(|href| href.len() <= address::BYTES_MAX);
        let base = base.and_then(|href| url.join(href.trim()).ok()).unwrap_or_else(|| url.clone());
        let mut gallery = Self { base: Some(base), ..Self::default() };
        let linked = linked::product(&finds.linked);
        let embedded = embedded::product(&finds.data, &finds.programs);
        let images = |product: &Product| {
            let of_variants = product.variants.iter().flat_map(|variant| variant.images.clone());
            product.images.iter().cloned().chain(of_variants).collect::<Vec<_>>()
        };
        for image in [images(&linked), finds.microdata, images(&embedded), finds.open_graph].concat() {
            gallery.add(&[image], None, None);
        }
        let has_data = !gallery.candidates.is_empty();
        let may_show = |candidate: &&PageImage| {
            let is_possible = match candidate.region {
                Region::Gallery | Region::AsideGallery | Region::Text => true,
                Region::AsideFrame => !has_data,
                Region::Aside => false,
            };
            is_possible && !gallery.is_icon(candidate)
        };
        let best = finds.images.iter().filter(may_show).map(|candidate| candidate.region).min();
        for candidate in &finds.images {
            let skip = if gallery.is_icon(candidate) {
                Some(SkipReason::Icon)
            } else {
                Some(SkipReason::OutsideGallery).filter(|_| Some(candidate.region) != best)
            };
            gallery.add(&candidate.files, candidate.src.as_ref(), skip);
        }
        if gallery.candidates.iter().all(|candidate| candidate.skip.is_some()) {
            for image in finds.last_resorts {
                gallery.add(&[image], None, None);
            }
        }
        Self { linked, embedded, ..gallery }
    }

    /// The number of images that the page names.
    pub fn discovered(&self) -> usize {
        self.candidates.len()
    }

    /// The images to fetch for `selector`.
    ///
    /// # Errors
    ///
    /// If a person must decide first.
    pub fn choose(&self, selector: Option<&str>) -> Result<Choice, ReviewNeeded> {
        let review = |reason, evidence| ReviewNeeded { reason, evidence, skipped: self.skips(&[]) };
        let (indexes, evidence) = match selector {
            Some(selector) => (self.tied_to(selector), Evidence::Exact),
            None if self.has_choice() => {
                return Err(review(ReviewReason::VariantSelectionRequired, Evidence::SelectionRequired));
            }
            None => {
                let wanted = self.candidates.iter().enumerate().filter(|(_, candidate)| candidate.skip.is_none());
                (wanted.map(|(index, _)| index).collect(), Evidence::NotRequested)
            }
        };
        match (&*indexes, selector) {
            ([], Some(_)) => Err(review(ReviewReason::VariantEvidenceUnavailable, Evidence::Unavailable)),
            ([], None) => Err(review(ReviewReason::NoGalleryImagesDiscovered, evidence)),
            _ => {
                let images = indexes.iter().map(|index| self.candidates[*index].files_to_try()).collect();
                Ok(Choice { images, evidence, skipped: self.skips(&indexes) })
            }
        }
    }

    /// The numbers of images that are not chosen, by reason.
    fn skips(&self, chosen: &[usize]) -> Skips {
        let chosen: BTreeSet<usize> = chosen.iter().copied().collect();
        let mut skips = Skips::new();
        for (_, candidate) in self.candidates.iter().enumerate().filter(|(index, _)| !chosen.contains(index)) {
            *skips.entry(candidate.skip.unwrap_or(SkipReason::Variant)).or_default() += 1;
        }
        skips
    }

    /// The candidates of the variants that a selector selects, in order and without duplicates.
    fn tied_to(&self, selector: &str) -> Vec<usize> {
        for product in [&self.linked, &self.embedded] {
            let selected = product.variants.iter().filter(|variant| variant.is_selected(selector));
            let mut tied: Vec<usize> = Vec::new();
            for index in selected.flat_map(|variant| self.indexes(variant)) {
                if !tied.contains(&index) {
                    tied.push(index);
                }
            }
            if !tied.is_empty() {
                return tied;
            }
        }
        Vec::new()
    }

    /// Returns `true` if the page shows several variants in different images.
    fn has_choice(&self) -> bool {
        [&self.linked, &self.embedded].into_iter().any(|product| {
            let shown: BTreeSet<BTreeSet<usize>> = product
                .variants
                .iter()
                .map(|variant| self.indexes(variant).collect())
                .filter(|set: &BTreeSet<_>| !set.is_empty())
                .collect();
            shown.len() > 1
        })
    }

    fn indexes<'a>(&'a self, variant: &'a Variant) -> impl Iterator<Item = usize> + 'a {
        let urls = variant.images.iter().filter_map(|image| self.resolve(image));
        urls.filter_map(|url| self.by_url.get(&url).copied())
    }

    fn resolve(&self, text: &str) -> Option<Url> {
        address::resolve(self.base.as_ref()?, text)
    }

    /// Returns `true` if an image in the body is an icon, a logo or a placeholder, judging by its declared size or the name of its first
    /// file. Names in a gallery are those of the product.
    fn is_icon(&self, image: &PageImage) -> bool {
        let has_icon_name = || {
            let first = image.files.iter().chain(&image.src).find_map(|file| self.resolve(file));
            first.is_some_and(|first| rules::is_icon(first.path()))
        };
        let is_in_gallery = matches!(image.region, Region::Gallery | Region::AsideGallery);
        image.is_tiny || !is_in_gallery && has_icon_name()
    }

    /// Adds an image by its files, the largest first, and that of `src`. If one of the files is already known, the image is
    /// merged into that candidate.
    fn add(&mut self, files: &[String], src: Option<&String>, skip: Option<SkipReason>) {
        if self.bytes >= BYTES_MAX {
            return;
        }
        let mut files: Vec<Url> = files.iter().filter_map(|file| self.resolve(file)).collect();
        let mut src = src.and_then(|src| self.resolve(src)).filter(|src| !files.contains(src));
        if files.is_empty() {
            files.extend(src.take());
        }
        let known = files.iter().enumerate().find_map(|(at, url)| Some((at, *self.by_url.get(url)?)));
        let (at, index) = match known {
            Some(known) => known,
            None if files.is_empty() || self.candidates.len() == ADDRESSES_MAX => return,
            None => {
                self.candidates.push(Candidate { skip, ..Candidate::default() });
                (0, self.candidates.len() - 1)
            }
        };
        let candidate = &mut self.candidates[index];
        candidate.skip = candidate.skip.and(skip);
        candidate.src = candidate.src.take().or(src);
        // Where the file that both have is in the candidate's own order.
        let mut place = candidate.files.iter().position(|url| *url == files[at]).unwrap_or(0);
        for url in files {
            if let Some(known) = candidate.files.iter().position(|other| *other == url) {
                place = known + 1;
            } else if candidate.files.len() < FILES_KEPT {
                self.bytes += 2 * (ADDRESS_BYTES + url.as_str().len());
                self.by_url.entry(url.clone()).or_insert(index);
                candidate.files.insert(place, url);
                place += 1;
            }
        }
    }
}

impl Candidate {
    fn files_to_try(&self) -> Vec<Url> {
        self.files.iter().take(FILES_MAX).chain(&self.src).cloned().collect()
    }
}

#[cfg(test)]
mod tests;

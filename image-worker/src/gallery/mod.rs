//! Gallery discovery: selects the pictures of a page that show its product
//! (docs/reference/imports.md#gallery-discovery).
//!
//! A pure function of a page's text and address.
//!
//! - **Order.** Pictures are ordered by source: JSON-LD, embedded product data, Open Graph, then
//!   the pictures in the body. If the body has a recognizable gallery, only the pictures of the
//!   gallery are used.
//! - **Duplicates.** Addresses that differ only in a size are one candidate with several files, the
//!   largest first.
//! - **Variants.** Only the page's own data assigns pictures to variants; nothing is guessed.

mod address;
mod charset;
mod embedded;
mod json;
mod linked;
mod markup;
mod product;
mod srcset;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use domain::import::{Evidence, ReviewReason};
use url::Url;

use address::Address;
use markup::{Markup, PageRegion, Picture};
use product::{ADDRESSES_MAX, Product, Variant};

pub use charset::{is_markup, text};

/// Files of one picture that are tried, the largest first.
const FILES_MAX: usize = 3;

/// Maximum number of files that are kept per picture.
const FILES_KEPT: usize = 16;

/// Words in an address that occur only in pictures that do not show a product.
const ICON_WORDS: [&str; 14] = [
    "sprite",
    "sprites",
    "icon",
    "icons",
    "favicon",
    "spacer",
    "spinner",
    "placeholder",
    "blank",
    "pixel",
    "loader",
    "loading",
    "logo",
    "logos",
];

/// Maximum memory of the addresses that are kept per page, in bytes. A short one in the page's text
/// becomes as long as the page's own address.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum memory of what is kept of a page whatever its size, in bytes: pictures, variants and
/// addresses.
const KEPT_BYTES_MAX: u64 = 40 * 1024 * 1024;

/// The memory to reserve for reading a page of `page_bytes`, in bytes: copies of its text, the JSON
/// that is parsed at the same time, and what is kept.
pub fn memory_bytes(page_bytes: usize) -> u64 {
    16 * page_bytes as u64 + json::WEIGHT_MAX + KEPT_BYTES_MAX
}

/// The pictures and variants of a page.
#[derive(Debug, Default)]
pub struct Gallery {
    /// Every picture that the page names, those of its product first.
    candidates: Vec<Candidate>,
    by_key: HashMap<String, usize>,
    /// Memory of the addresses and keys.
    bytes: usize,
    base: Option<Url>,
    linked: Product,
    embedded: Product,
}

/// A picture with its files of different sizes.
#[derive(Debug)]
struct Candidate {
    /// The files with their widths.
    files: Vec<(Url, u32)>,
    /// Whether it shows the product.
    wanted: bool,
}

/// The pictures to fetch.
#[derive(Debug, PartialEq)]
pub struct Choice {
    /// For each picture its files, the largest first.
    pub pictures: Vec<Vec<Url>>,
    /// How the pictures were assigned to the requested variant.
    pub evidence: Evidence,
}

/// Why nothing is fetched, and a review is needed instead.
#[derive(Debug, PartialEq)]
pub struct ReviewNeeded {
    /// What a person must decide or check.
    pub reason: ReviewReason,
    /// What the page says about variants.
    pub evidence: Evidence,
}

impl Gallery {
    /// Reads a page that was fetched from `url`.
    pub fn read(html: &str, url: &Url) -> Self {
        let markup = Markup::read(html);
        let base = markup.base.as_deref().filter(|href| href.len() <= address::BYTES_MAX);
        let base = base.and_then(|href| url.join(href.trim()).ok()).unwrap_or_else(|| url.clone());
        let mut gallery = Self { base: Some(base), ..Self::default() };
        let linked = linked::product(&markup.linked);
        let embedded = embedded::product(&markup.data, &markup.programs);
        for product in [&linked, &embedded] {
            let of_variants = product.variants.iter().flat_map(|variant| &variant.images);
            for image in product.images.iter().chain(of_variants) {
                let is_icon = gallery.is_icon([image], true);
                gallery.add(&[image], !is_icon);
            }
        }
        for image in &markup.open_graph {
            let is_icon = gallery.is_icon([image], false);
            gallery.add(&[image], !is_icon);
        }
        let has_gallery = markup.pictures.iter().any(|picture| picture.place == PageRegion::Gallery);
        for picture in &markup.pictures {
            let place =
                if has_gallery { picture.place == PageRegion::Gallery } else { picture.place == PageRegion::Text };
            gallery.add_picture(picture, place);
        }
        Self { linked, embedded, ..gallery }
    }

    /// The number of distinct pictures that the page names.
    pub fn discovered(&self) -> usize {
        self.candidates.len()
    }

    /// The pictures to fetch for `selector`.
    ///
    /// # Errors
    ///
    /// If a person must decide first.
    pub fn choose(&self, selector: Option<&str>) -> Result<Choice, ReviewNeeded> {
        let (indexes, evidence) = match selector {
            Some(selector) => {
                let tied = self.tied_to(selector);
                if tied.is_empty() {
                    let (reason, evidence) = (ReviewReason::VariantEvidenceUnavailable, Evidence::Unavailable);
                    return Err(ReviewNeeded { reason, evidence });
                }
                (tied, Evidence::Exact)
            }
            None if self.has_choice() => {
                let (reason, evidence) = (ReviewReason::VariantSelectionRequired, Evidence::SelectionRequired);
                return Err(ReviewNeeded { reason, evidence });
            }
            None => {
                let wanted = self.candidates.iter().enumerate().filter(|(_, candidate)| candidate.wanted);
                (wanted.map(|(index, _)| index).collect(), Evidence::NotRequested)
            }
        };
        if indexes.is_empty() {
            return Err(ReviewNeeded { reason: ReviewReason::NoGalleryImagesDiscovered, evidence });
        }
        let pictures = indexes.into_iter().map(|index| self.candidates[index].largest_first()).collect();
        Ok(Choice { pictures, evidence })
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

    /// Whether the page shows several variants in different pictures.
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
        let base = self.base.as_ref();
        let addresses = variant.images.iter().filter_map(move |image| Address::resolve(base?, image));
        addresses.filter_map(|address| self.by_key.get(&address.key).copied())
    }

    fn add_picture(&mut self, picture: &Picture, in_place: bool) {
        let is_icon = picture.is_tiny || self.is_icon(&picture.files, picture.place == PageRegion::Gallery);
        let files: Vec<&String> = picture.files.iter().collect();
        self.add(&files, in_place && !is_icon);
    }

    /// Whether the address of the first of these files says that it is an icon, a logo or a placeholder. A picture in a gallery may
    /// show a logo, so the word is ignored there.
    fn is_icon<'a>(&self, files: impl IntoIterator<Item = &'a String>, in_gallery: bool) -> bool {
        let first = self.base.as_ref().and_then(|base| files.into_iter().find_map(|file| Address::resolve(base, file)));
        first.is_some_and(|first| {
            first.words().any(|word| ICON_WORDS.contains(&&*word) && !(in_gallery && word.starts_with("logo")))
        })
    }

    /// Adds a picture by its files, the largest first. If one of the files is already known, the
    /// picture is merged into that candidate.
    fn add(&mut self, files: &[&String], wanted: bool) {
        let Some(base) = self.base.as_ref().filter(|_| self.bytes < BYTES_MAX) else { return };
        let mut addresses: Vec<Address> = files.iter().filter_map(|file| Address::resolve(base, file)).collect();
        let Some(most) = addresses.iter().map(|address| address.width).max() else { return };
        // The page's order shows which file is the largest; the addresses may not.
        addresses[0].width = most;
        let known = addresses.iter().find_map(|address| self.by_key.get(&address.key).copied());
        let index = match known {
            Some(index) => index,
            None if self.candidates.len() < ADDRESSES_MAX => {
                self.candidates.push(Candidate { files: Vec::new(), wanted: false });
                self.candidates.len() - 1
            }
            None => return,
        };
        let candidate = &mut self.candidates[index];
        candidate.wanted |= wanted;
        for address in addresses {
            if let Entry::Vacant(place) = self.by_key.entry(address.key) {
                self.bytes += size_of::<Address>() + place.key().len();
                place.insert(index);
            }
            if let Some((_, width)) = candidate.files.iter_mut().find(|(url, _)| *url == address.url) {
                *width = address.width.max(*width);
            } else if candidate.files.len() < FILES_KEPT {
                self.bytes += size_of::<Address>() + address.url.as_str().len();
                candidate.files.push((address.url, address.width));
            }
        }
    }
}

impl Candidate {
    fn largest_first(&self) -> Vec<Url> {
        let mut files: Vec<&(Url, u32)> = self.files.iter().collect();
        files.sort_by_key(|(_, width)| std::cmp::Reverse(*width));
        files.into_iter().map(|(url, _)| url.clone()).take(FILES_MAX).collect()
    }
}

#[cfg(test)]
mod tests;

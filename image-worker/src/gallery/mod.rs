//! Page rules: which pictures of a page are those of its product (decisions 14.3, 14.4).
//!
//! A pure function of a page's text and address. **Order.** Pictures are taken in the order of their sources: JSON-LD,
//! embedded product data, Open Graph, then the pictures in the text, where those of a recognisable gallery come instead of
//! all others. **One picture, one candidate.** Addresses that differ in a size alone are one candidate with several files,
//! the largest first. **Variants** are tied to pictures by the page's own data and never by a guess.

mod address;
mod charset;
mod embedded;
mod linked;
mod markup;
mod product;
mod srcset;

use std::collections::{BTreeSet, HashMap};

use domain::import::{Evidence, ReviewReason};
use url::Url;

use address::Address;
use markup::{Markup, Picture, Place};
use product::{Product, Variant};

pub use charset::{is_markup, text};

/// Files of one picture that are tried, the largest first.
const FILES_MAX: usize = 3;

/// Files of one picture that are remembered.
const FILES_KEPT: usize = 16;

/// Words of an address that only what is no picture of a product has.
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

/// Addresses that are kept of one page: more than are ever fetched, and a bound on memory.
const ADDRESSES_MAX: usize = 2000;

/// What a page offers.
#[derive(Debug, Default)]
pub struct Gallery {
    /// Every picture that the page names, those of its product first.
    candidates: Vec<Candidate>,
    by_key: HashMap<String, usize>,
    base: Option<Url>,
    linked: Product,
    embedded: Product,
}

/// A picture at its sizes.
#[derive(Debug)]
struct Candidate {
    /// Its files with their widths.
    files: Vec<(Url, u32)>,
    /// Whether it is one of the product's.
    wanted: bool,
}

/// What is to be fetched of a page.
#[derive(Debug, PartialEq)]
pub struct Choice {
    /// For each picture its files, the largest first.
    pub pictures: Vec<Vec<Url>>,
    /// How they belong to the variant that was asked for.
    pub evidence: Evidence,
}

/// Why nothing is to be fetched.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    /// What a person has to decide or to look at.
    pub reason: ReviewReason,
    /// What is known of variants.
    pub evidence: Evidence,
}

impl Gallery {
    /// Reads a page that came from `url`.
    pub fn read(html: &str, url: &Url) -> Self {
        let markup = Markup::read(html);
        let base = markup.base.as_deref().and_then(|href| url.join(href.trim()).ok()).unwrap_or_else(|| url.clone());
        let mut gallery = Self {
            linked: linked::product(&markup.linked),
            embedded: embedded::product(&markup.data, &markup.programs),
            base: Some(base),
            ..Self::default()
        };
        for product in [gallery.linked.clone(), gallery.embedded.clone()] {
            let of_variants = product.variants.iter().flat_map(|variant| &variant.images);
            for image in product.images.iter().chain(of_variants) {
                gallery.add(&[image], true);
            }
        }
        for image in &markup.open_graph {
            gallery.add(&[image], true);
        }
        let has_gallery = markup.pictures.iter().any(|picture| picture.place == Place::Gallery);
        for picture in &markup.pictures {
            let place = if has_gallery { picture.place == Place::Gallery } else { picture.place == Place::Text };
            gallery.add_picture(picture, place);
        }
        gallery
    }

    /// How many different pictures the page names.
    pub fn discovered(&self) -> usize {
        self.candidates.len()
    }

    /// What to fetch for `selector`.
    ///
    /// # Errors
    /// Why a person has to decide first.
    pub fn choose(&self, selector: Option<&str>) -> Result<Choice, Refusal> {
        let (indexes, evidence) = match selector {
            Some(selector) => {
                let tied = self.tied_to(selector);
                if tied.is_empty() {
                    let (reason, evidence) = (ReviewReason::VariantEvidenceUnavailable, Evidence::Unavailable);
                    return Err(Refusal { reason, evidence });
                }
                (tied, Evidence::Exact)
            }
            None if self.has_choice() => {
                let (reason, evidence) = (ReviewReason::VariantSelectionRequired, Evidence::SelectionRequired);
                return Err(Refusal { reason, evidence });
            }
            None => {
                let wanted = self.candidates.iter().enumerate().filter(|(_, candidate)| candidate.wanted);
                (wanted.map(|(index, _)| index).collect(), Evidence::NotRequested)
            }
        };
        if indexes.is_empty() {
            return Err(Refusal { reason: ReviewReason::NoGalleryImagesDiscovered, evidence });
        }
        let pictures = indexes.into_iter().map(|index| self.candidates[index].largest_first()).collect();
        Ok(Choice { pictures, evidence })
    }

    /// The candidates of the variants that a selector names, in order, once each.
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
        let Some(base) = &self.base else { return };
        let first = picture.files.iter().find_map(|file| Address::resolve(base, file));
        let Some(first) = first else { return };
        let is_icon = picture.is_tiny
            || first.words().any(|word| {
                // A picture in a gallery may well show a logo.
                ICON_WORDS.contains(&&*word) && !(picture.place == Place::Gallery && word.starts_with("logo"))
            });
        let files: Vec<&String> = picture.files.iter().collect();
        self.add(&files, in_place && !is_icon);
    }

    /// Takes in a picture by its files, the largest first. Known by one of them, it is one that is there already.
    fn add(&mut self, files: &[&String], wanted: bool) {
        let Some(base) = &self.base else { return };
        let mut addresses: Vec<Address> = files.iter().filter_map(|file| Address::resolve(base, file)).collect();
        let Some(most) = addresses.iter().map(|address| address.width).max() else { return };
        // The page says which of its files is the largest; their addresses need not.
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
            self.by_key.entry(address.key).or_insert(index);
            if let Some((_, width)) = candidate.files.iter_mut().find(|(url, _)| *url == address.url) {
                *width = address.width.max(*width);
            } else if candidate.files.len() < FILES_KEPT {
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

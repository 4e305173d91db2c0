//! A product as a page's data describes it, independent of the data's form.
//!
//! **Guarantee.** Collecting a product takes time in proportion to the page, and a few megabytes, whatever the page contains.
//!
//! **Mechanism.** [`Images`] and [`bounded`] stop at a number and a size.
//!
//! **Reason.** What many variants share is copied for each of them, so that a small page can describe gigabytes.

use std::collections::HashSet;

use serde_json::Value;

use super::address;

/// Maximum number of addresses that are kept: more than are ever fetched.
pub const ADDRESSES_MAX: usize = 2000;

/// Maximum number of variants of a product (docs/reference/imports.md#sources-of-images).
pub const VARIANTS_MAX: usize = 1000;

/// Maximum memory of the variants of a product, in bytes.
const VARIANTS_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Product {
    /// Addresses of its images, in order, as written.
    pub images: Vec<String>,
    pub variants: Vec<Variant>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// Distinguishing attributes: names and values, as written.
    pub attributes: Vec<(String, String)>,
    /// Addresses of its own images, as written.
    pub images: Vec<String>,
}

impl Variant {
    /// Returns `true` if the selector `key=value` selects the variant: one of its attributes has exactly this name and value, as the page
    /// writes them. Nothing is inferred (docs/reference/imports.md#variant-selector).
    pub fn is_selected(&self, selector: &str) -> bool {
        self.attributes.iter().any(|(name, value)| {
            selector.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('=')) == Some(value.as_str())
        })
    }

    /// Its memory in bytes. Twice the size of a `String` covers the overhead of its allocation.
    fn bytes(&self) -> usize {
        let texts = self.attributes.iter().flat_map(|(name, value)| [name, value]).chain(&self.images);
        texts.map(|text| 2 * size_of::<String>() + text.len()).sum()
    }
}

/// The first variants that are within the limits.
pub fn bounded(variants: impl Iterator<Item = Variant>) -> Vec<Variant> {
    let mut left = VARIANTS_BYTES_MAX;
    let within = variants.take(VARIANTS_MAX).map_while(|variant| {
        left = left.checked_sub(variant.bytes())?;
        Some(variant)
    });
    within.collect()
}

/// Collects addresses of images in order, each once, until there are [`ADDRESSES_MAX`].
#[derive(Debug, Default)]
pub struct Images {
    /// The addresses, as written.
    pub list: Vec<String>,
    known: HashSet<String>,
}

impl Images {
    /// Adds the addresses that are new.
    pub fn add(&mut self, addresses: impl IntoIterator<Item = impl AsRef<str>>) {
        for address in addresses {
            if self.list.len() == ADDRESSES_MAX {
                return;
            }
            let text = address.as_ref();
            if text.len() <= address::BYTES_MAX && !self.known.contains(text) {
                self.known.insert(text.to_owned());
                self.list.push(text.to_owned());
            }
        }
    }
}

/// A scalar as text.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_an_exact_name_and_value() {
        let attribute = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let attributes = vec![attribute("Shoe Size", "EU 42"), attribute("a=b", "c")];
        let variant = Variant { attributes, images: Vec::new() };
        for selector in ["Shoe Size=EU 42", "a=b=c"] {
            assert!(variant.is_selected(selector), "{selector}");
        }
        for selector in [
            "shoe size=EU 42",
            "Shoe_Size=EU 42",
            "Shoe Size = EU 42",
            " Shoe Size=EU 42",
            "Shoe Size=eu 42",
            "Shoe Size=42",
            "Size=EU 42",
            "Shoe Size=",
            "EU 42",
            "a=b",
        ] {
            assert!(!variant.is_selected(selector), "{selector}");
        }
    }
}

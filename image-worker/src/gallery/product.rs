//! A product as a page's data describes it, independent of the data's form.

use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Product {
    /// Addresses of its pictures, in order, as written.
    pub images: Vec<String>,
    /// Variants of the product.
    pub variants: Vec<Variant>,
}

/// A variant of a product.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// Distinguishing attributes: names and values, as written.
    pub attributes: Vec<(String, String)>,
    /// Addresses of its own pictures, as written.
    pub images: Vec<String>,
}

impl Variant {
    /// Whether the selector `key=value` selects the variant: one of its attributes has exactly this name and value, as the page
    /// writes them. Nothing is inferred (docs/reference/imports.md#variant-selector).
    pub fn is_selected(&self, selector: &str) -> bool {
        self.attributes.iter().any(|(name, value)| {
            selector.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('=')) == Some(value.as_str())
        })
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

/// Adds the addresses that are not in the list yet.
pub fn extend_once(addresses: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for address in more {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
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

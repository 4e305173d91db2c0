//! A product as a page's data describes it, whatever the data's form.

use serde_json::Value;

/// A product.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Product {
    /// Addresses of its pictures, in order, as written.
    pub images: Vec<String>,
    /// The forms it comes in.
    pub variants: Vec<Variant>,
}

/// A form of a product.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variant {
    /// What tells it from the others: names and values, as written.
    pub attributes: Vec<(String, String)>,
    /// Addresses of its own pictures, as written.
    pub images: Vec<String>,
}

impl Variant {
    /// Whether it is what a selector `key=value` asks for. Names are compared without regard to case, because shops write
    /// one name in several ways; a value is what it is (specification: exact, never inferred).
    pub fn is_selected(&self, selector: &str) -> bool {
        let Some((key, value)) = selector.split_once('=') else { return false };
        let (key, value) = (plain(key), value.trim());
        self.attributes.iter().any(|(name, held)| plain(name) == key && held.trim() == value)
    }
}

/// A name in lower case, with one space for whatever parts its words.
fn plain(name: &str) -> String {
    let words = name.split(|c: char| c.is_whitespace() || c == '_' || c == '-').filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// A scalar as text.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Adds the addresses that are not there yet.
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
        let variant = Variant { attributes: vec![("Shoe Size".into(), "EU 42".into())], images: Vec::new() };
        for selector in ["Shoe Size=EU 42", "shoe_size=EU 42", "shoe-size = EU 42"] {
            assert!(variant.is_selected(selector), "{selector}");
        }
        for selector in ["shoe size=eu 42", "shoe size=42", "size=EU 42", "EU 42", "shoe size="] {
            assert!(!variant.is_selected(selector), "{selector}");
        }
    }
}

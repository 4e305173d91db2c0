//! `srcset` (WHATWG HTML, 4.8.4.3.10: parsing a srcset attribute).

/// Stands for a pixel density of 1: a set never mixes densities and widths, so only their order matters.
const DENSITY: f64 = 1000.0;

/// Maximum number of candidates of a set; each takes many times the memory of its text.
const CANDIDATES_MAX: usize = 256;

/// The candidates of a set in its order, each with its width, or a number that orders densities.
///
/// As in the standard, an address ends at white space: commas inside it are part of it.
pub fn candidates(set: &str) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    let mut rest = set;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() || found.len() == CANDIDATES_MAX {
            return found;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (address, after) = rest.split_at(end);
        let bare = address.trim_end_matches(',');
        let (descriptors, after) = match bare.len() < address.len() {
            true => ("", after),
            false => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((bare.to_owned(), size(descriptors)));
        rest = after;
    }
}

/// Parses `800w` or `2x`; 1x when it is missing.
fn size(descriptors: &str) -> u32 {
    let sizes = descriptors.split_ascii_whitespace().filter_map(|descriptor| {
        if let Some(width) = descriptor.strip_suffix('w') {
            return width.parse::<f64>().ok();
        }
        Some(descriptor.strip_suffix('x')?.parse::<f64>().ok()? * DENSITY)
    });
    // The cast saturates; what is not a number becomes 0.
    sizes.fold(None, |most: Option<f64>, size| Some(most.map_or(size, |most| most.max(size)))).unwrap_or(DENSITY) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(set: &str) -> Vec<(String, u32)> {
        candidates(set)
    }

    fn expect(pairs: &[(&str, u32)]) -> Vec<(String, u32)> {
        pairs.iter().map(|(address, size)| ((*address).to_owned(), *size)).collect()
    }

    #[test]
    fn widths_and_densities_are_read() {
        assert_eq!(parse("a.jpg 400w, b.jpg 800w"), expect(&[("a.jpg", 400), ("b.jpg", 800)]));
        assert_eq!(
            parse("a.jpg, b.jpg 1.5x,\n c.jpg 2x"),
            expect(&[("a.jpg", 1000), ("b.jpg", 1500), ("c.jpg", 2000)])
        );
        assert_eq!(parse("a.jpg 400w 300h"), expect(&[("a.jpg", 400)]));
    }

    #[test]
    fn commas_within_an_address_are_its_own() {
        assert_eq!(
            parse("/w_400,h_300/a.jpg 400w,/w_800,h_600/a.jpg 800w"),
            expect(&[("/w_400,h_300/a.jpg", 400), ("/w_800,h_600/a.jpg", 800)])
        );
        assert_eq!(parse("a.jpg,"), expect(&[("a.jpg", 1000)]));
    }

    #[test]
    fn nonsense_is_survived() {
        for nonsense in ["", " , ,, ", "a.jpg xw, ,b.jpg -1w", "a.jpg 1e99w", "a.jpg NaNx"] {
            assert!(parse(nonsense).len() <= 2, "{nonsense}");
        }
    }
}

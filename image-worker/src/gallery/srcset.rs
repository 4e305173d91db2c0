//! `srcset` (WHATWG HTML, 4.8.4.3.10: parsing a srcset attribute).

/// What stands for a pixel density of 1: densities and widths are never mixed in one set, so only their order counts.
const DENSITY: f64 = 1000.0;

/// The candidates of a set in its order, each with its width, or a number that orders densities.
///
/// As the standard has it, an address ends at white space: commas within it are its own.
pub fn candidates(set: &str) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    let mut rest = set;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
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

/// `800w`, `2x`, or 1x when nothing is said.
fn size(descriptors: &str) -> u32 {
    let sizes = descriptors.split_ascii_whitespace().filter_map(|descriptor| {
        if let Some(width) = descriptor.strip_suffix('w') {
            return width.parse::<f64>().ok();
        }
        Some(descriptor.strip_suffix('x')?.parse::<f64>().ok()? * DENSITY)
    });
    // Saturates; what is no number is 0.
    sizes.fold(None, |most: Option<f64>, size| Some(most.map_or(size, |most| most.max(size)))).unwrap_or(DENSITY) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &str) -> Vec<(String, u32)> {
        candidates(set)
    }

    fn expect(pairs: &[(&str, u32)]) -> Vec<(String, u32)> {
        pairs.iter().map(|(address, size)| ((*address).to_owned(), *size)).collect()
    }

    #[test]
    fn widths_and_densities_are_read() {
        assert_eq!(read("a.jpg 400w, b.jpg 800w"), expect(&[("a.jpg", 400), ("b.jpg", 800)]));
        assert_eq!(read("a.jpg, b.jpg 1.5x,\n c.jpg 2x"), expect(&[("a.jpg", 1000), ("b.jpg", 1500), ("c.jpg", 2000)]));
        assert_eq!(read("a.jpg 400w 300h"), expect(&[("a.jpg", 400)]));
    }

    #[test]
    fn commas_within_an_address_are_its_own() {
        assert_eq!(
            read("/w_400,h_300/a.jpg 400w,/w_800,h_600/a.jpg 800w"),
            expect(&[("/w_400,h_300/a.jpg", 400), ("/w_800,h_600/a.jpg", 800)])
        );
        assert_eq!(read("a.jpg,"), expect(&[("a.jpg", 1000)]));
    }

    #[test]
    fn nonsense_is_survived() {
        for nonsense in ["", " , ,, ", "a.jpg xw, ,b.jpg -1w", "a.jpg 1e99w", "a.jpg NaNx"] {
            assert!(read(nonsense).len() <= 2, "{nonsense}");
        }
    }
}

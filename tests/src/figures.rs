//! Statistics of measured figures.

/// The median of these figures. There must be at least one.
pub fn median(figures: &[f64]) -> f64 {
    quantile(figures, 0.5)
}

/// The smallest figure that at least a share `q` of them does not exceed (nearest rank). There must be at least one.
pub fn quantile(figures: &[f64], q: f64) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_nearest_rank() {
        let figures = [4.0, 1.0, 3.0, 2.0];
        assert_eq!([0.0, 0.25, 0.5, 0.51, 0.99, 1.0].map(|q| quantile(&figures, q)), [1.0, 1.0, 2.0, 3.0, 4.0, 4.0]);
        assert_eq!(median(&[7.0]), 7.0);
    }
}

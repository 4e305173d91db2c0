//! Layout of the images: justified rows or columns that fill an area.

use super::vector::Area;

/// The desired area of the most important image, relative to the average area of the others.
const HERO: f64 = 2.2;

/// The range of aspect ratios that are kept. Images outside of it are cropped, so that none
/// becomes a narrow strip.
const RATIOS: (f64, f64) = (0.56, 1.9);

/// The maximum number of small images per row.
const SMALL_IN_ROW: usize = 6;

/// The height of a row of small images next to large ones, as a fraction of the total height.
const SMALL_SHARE: f64 = 0.22;

/// An image to be placed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tile {
    /// Width divided by height.
    pub(super) ratio: f64,
    /// `true` if it is shown as a small swatch.
    pub(super) is_small: bool,
}

/// Places `tiles` in order, large ones above small ones, with a gap of `gap` pixels. Together they
/// fill `area`.
pub(super) fn arrange(tiles: &[Tile], area: Area, gap: f64) -> Vec<Area> {
    let ratios = |is_small: bool| -> Vec<f64> {
        let tiles = tiles.iter().filter(|tile| tile.is_small == is_small);
        tiles.map(|tile| tile.ratio.clamp(RATIOS.0, RATIOS.1)).collect()
    };
    let (large, small) = (ratios(false), ratios(true));
    let (large, small) = match (large.is_empty(), small.is_empty()) {
        (_, true) => (justified(&large, area, gap), Vec::new()),
        (true, false) => (Vec::new(), justified(&vec![1.0; small.len()], area, gap)),
        (false, false) => {
            let rows = small.len().div_ceil(SMALL_IN_ROW);
            let gaps = gap * rows as f64;
            let height = (area.height * (1.0 - (1.0 - SMALL_SHARE).powi(rows as i32)) - gaps).max(0.0) / rows as f64;
            let above = Area { height: (area.height - (height + gap) * rows as f64).max(0.0), ..area };
            let strips = even(small.len(), rows).into_iter().enumerate().flat_map(|(row, count)| {
                let y = above.bottom() + gap + row as f64 * (height + gap);
                row_of(&vec![1.0; count], Area { y, height, ..area }, gap)
            });
            (justified(&large, above, gap), strips.collect())
        }
    };
    let (mut large, mut small) = (large.into_iter(), small.into_iter());
    tiles.iter().filter_map(|tile| if tile.is_small { small.next() } else { large.next() }).collect()
}

/// Distributes `count` items over `rows` rows, the longer ones last.
fn even(count: usize, rows: usize) -> Vec<usize> {
    (0..rows).map(|row| (count * (row + 1)) / rows - (count * row) / rows).collect()
}

/// Tries every way to break the images into rows or columns, and returns the one with the lowest
/// cost.
fn justified(ratios: &[f64], area: Area, gap: f64) -> Vec<Area> {
    let turned = Area::new(area.y, area.x, area.height, area.width);
    let inverted: Vec<f64> = ratios.iter().map(|ratio| 1.0 / ratio).collect();
    let ways = 1_u32 << ratios.len().saturating_sub(1).min(15);
    let mut best = (f64::INFINITY, Vec::new());
    for way in 0..ways {
        let rows = rows_of(ratios, area, gap, way);
        let columns = rows_of(&inverted, turned, gap, way);
        let columns: Vec<Area> =
            columns.into_iter().map(|area| Area::new(area.y, area.x, area.height, area.width)).collect();
        for places in [rows, columns] {
            let cost = cost(ratios, &places);
            if cost < best.0 {
                best = (cost, places);
            }
        }
    }
    best.1
}

/// Places images in rows. A row ends after each image whose bit is set in `way`. The heights of
/// the rows are proportional to the heights that their images need.
fn rows_of(ratios: &[f64], area: Area, gap: f64, way: u32) -> Vec<Area> {
    let mut rows: Vec<&[f64]> = Vec::new();
    let mut start = 0;
    for end in 1..=ratios.len() {
        if end == ratios.len() || (way >> (end - 1)) & 1 == 1 {
            rows.push(&ratios[start..end]);
            start = end;
        }
    }
    let natural = |row: &[f64]| (area.width - gap * (row.len() - 1) as f64).max(1.0) / row.iter().sum::<f64>();
    let wanted: f64 = rows.iter().map(|row| natural(row)).sum();
    let height = (area.height - gap * rows.len().saturating_sub(1) as f64).max(0.0);
    let mut y = area.y;
    let mut places = Vec::with_capacity(ratios.len());
    for row in rows {
        let height = height * natural(row) / wanted;
        places.extend(row_of(row, Area { y, height, ..area }, gap));
        y += height + gap;
    }
    places
}

/// Places images side by side with widths in proportion to their aspect ratios.
fn row_of(ratios: &[f64], area: Area, gap: f64) -> Vec<Area> {
    let width = (area.width - gap * ratios.len().saturating_sub(1) as f64).max(0.0);
    let sum: f64 = ratios.iter().sum();
    let mut x = area.x;
    let mut places = Vec::with_capacity(ratios.len());
    for ratio in ratios {
        let width = width * ratio / sum;
        places.push(Area { x, width, ..area });
        x += width + gap;
    }
    places
}

/// The cost of a layout: how much is cropped, how uneven the areas are, and how little the first,
/// most important image stands out.
fn cost(ratios: &[f64], places: &[Area]) -> f64 {
    let count = places.len() as f64;
    let areas: Vec<f64> = places.iter().map(|place| (place.width * place.height).max(1.0)).collect();
    let total: f64 = areas.iter().sum();
    let first = match places.len() {
        0..=2 => 1.0,
        _ => HERO,
    };
    let unit = total / (count - 1.0 + first);
    ratios.iter().zip(places).zip(&areas).enumerate().fold(0.0, |sum, (index, ((ratio, place), area))| {
        let cut = apart(place.width.max(1.0) / place.height.max(1.0), *ratio);
        let uneven = apart(*area, if index == 0 { first * unit } else { unit });
        sum + (cut + 0.5 * uneven) / count
    })
}

/// The distance between two values by their ratio, at least 0. It is squared rather than
/// logarithmic, which is sufficient for comparisons and cheaper.
fn apart(one: f64, other: f64) -> f64 {
    let ratio = (one / other).max(other / one);
    (ratio - 1.0) * (ratio - 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn large(ratio: f64) -> Tile {
        Tile { ratio, is_small: false }
    }

    #[test]
    fn two_wide_images_stand_above_each_other_and_two_high_ones_beside() {
        let square = Area::new(10.0, 20.0, 410.0, 410.0);
        let above = arrange(&[large(1.8), large(1.8)], square, 10.0);
        assert_eq!(above, [Area::new(10.0, 20.0, 410.0, 200.0), Area::new(10.0, 230.0, 410.0, 200.0)]);
        let beside = arrange(&[large(0.6), large(0.6)], square, 10.0);
        assert_eq!(beside, [Area::new(10.0, 20.0, 200.0, 410.0), Area::new(220.0, 20.0, 200.0, 410.0)]);
    }

    #[test]
    fn none_of_many_is_larger_than_the_first() {
        let size = |place: &Area| place.width * place.height;
        for count in 3..=9 {
            let places = arrange(&vec![large(1.0); count], Area::new(0.0, 0.0, 900.0, 700.0), 16.0);
            assert!(places.iter().all(|place| size(&places[0]) > 0.99 * size(place)), "{places:?}");
        }
        let places = arrange(&[large(1.0); 5], Area::new(0.0, 0.0, 900.0, 700.0), 16.0);
        assert!(size(&places[0]) > 1.3 * size(&places[4]), "{places:?}");
    }

    #[test]
    fn swatches_stand_below_what_is_large_or_fill_the_area_alone() {
        let swatch = Tile { ratio: 1.0, is_small: true };
        let area = Area::new(0.0, 0.0, 600.0, 600.0);
        let places = arrange(&[swatch, large(1.0), swatch], area, 12.0);
        assert!(places[1].height > 3.0 * places[0].height);
        assert_eq!((places[0].y, places[0].bottom()), (places[2].y, 600.0));
        let alone = arrange(&[swatch], area, 12.0);
        assert_eq!(alone, [area]);
        assert_eq!(arrange(&[], area, 12.0), []);
    }

    proptest! {
        #[test]
        fn places_fill_their_area_without_overlap(
            ratios in proptest::collection::vec((0.05f64..20.0, any::<bool>()), 1..=16),
            width in 200.0f64..2000.0,
            height in 200.0f64..2000.0,
        ) {
            let tiles: Vec<Tile> = ratios.iter().map(|(ratio, is_small)| Tile { ratio: *ratio, is_small: *is_small }).collect();
            let area = Area::new(7.0, 9.0, width, height);
            let places = arrange(&tiles, area, 4.0);
            prop_assert_eq!(places.len(), tiles.len());
            for (index, place) in places.iter().enumerate() {
                prop_assert!(place.width >= 1.0 && place.height >= 1.0, "{:?}", place);
                prop_assert!(place.x >= 6.99 && place.y >= 8.99);
                prop_assert!(place.right() <= area.right() + 0.01 && place.bottom() <= area.bottom() + 0.01);
                for other in &places[..index] {
                    let apart_x = place.x >= other.right() + 3.99 || other.x >= place.right() + 3.99;
                    let apart_y = place.y >= other.bottom() + 3.99 || other.y >= place.bottom() + 3.99;
                    prop_assert!(apart_x || apart_y, "{:?} over {:?}", place, other);
                }
            }
            prop_assert!(places.iter().any(|place| (place.right() - area.right()).abs() < 0.01));
            prop_assert!(places.iter().any(|place| (place.bottom() - area.bottom()).abs() < 0.01));
        }
    }
}

//! A palette of five colors, extracted from images or derived from a seed, and the matching theme
//! of a frame.

use std::collections::BTreeMap;

use super::oklab::Oklab;
use super::seed::Seed;
use raster::{Bitmap, Channels, Color};

/// The number of colors in a palette.
pub(super) const COLORS: usize = 5;

/// The number of clusters of an image's colors, from which the palette is selected.
const CLUSTERS: usize = 8;

/// The number of sample points per side of an image. The colors of a thumbnail are sufficient for
/// a palette.
const SAMPLES: u32 = 48;

/// The number of k-means iterations. After that, clusters hardly move.
const ROUNDS: usize = 6;

/// The number of cells per unit of Oklab in the grid that counts equal colors. The cells are hardly
/// distinguishable steps.
const CELLS: f64 = 40.0;

/// The minimum squared distance between two colors of a palette: about two clearly visible steps.
const DISTINCT: f64 = 0.06 * 0.06;

/// Five colors from dark to light.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Palette(pub(super) [Oklab; COLORS]);

impl Palette {
    /// The palette of images, which have equal weight whatever their size. Without images, it
    /// is a harmony.
    pub(super) fn new(images: &[Bitmap], seed: &Seed) -> Self {
        let mut cells = BTreeMap::new();
        images.iter().for_each(|image| count(image, &mut cells));
        match cells.is_empty() {
            true => Self::harmony(&mut seed.clone()),
            false => Self::from_colors(
                &cells.into_values().map(|(sum, weight)| (sum.scaled(1.0 / weight), weight)).collect::<Vec<_>>(),
            ),
        }
    }

    /// A harmony: neighboring hues and one opposite hue, from dark to pale.
    pub(super) fn harmony(seed: &mut Seed) -> Self {
        let hue = seed.between(0.0, 1.0);
        let step = seed.between(0.05, 0.10) * if seed.below(2) == 0 { 1.0 } else { -1.0 };
        let accent = hue + [0.5, 0.42, 0.33][seed.below(3)];
        Self::sorted([
            Oklab::polar(0.33, 0.075, hue - step),
            Oklab::polar(0.52, 0.115, hue),
            Oklab::polar(0.68, 0.145, accent),
            Oklab::polar(0.80, 0.085, hue + step),
            Oklab::polar(0.925, 0.035, accent + step),
        ])
    }

    /// Selects the most characteristic of weighted colors.
    fn from_colors(colors: &[(Oklab, f64)]) -> Self {
        let mut clusters = cluster(colors);
        let total: f64 = clusters.iter().map(|(_, weight)| weight).sum();
        // A large area of a muted color counts as much as a small area of a saturated one.
        let salience = |(color, weight): &(Oklab, f64)| (weight / total).sqrt() * (0.25 + 2.0 * color.chroma());
        clusters.sort_by(|one, other| salience(other).total_cmp(&salience(one)));
        let mut chosen: Vec<Oklab> = Vec::with_capacity(COLORS);
        for (color, _) in &clusters {
            if chosen.len() < COLORS && chosen.iter().all(|other| other.distance(*color) > DISTINCT) {
                chosen.push(*color);
            }
        }
        // If there are too few colors, variants of them with other lightness are added, those with
        // the largest distance first.
        let own = chosen.len();
        while chosen.len() < COLORS {
            let base = chosen[chosen.len() % own];
            let steps = (1..20).map(|step| base.toned(f64::from(step) / 20.0, 0.12));
            let nearest = |color: Oklab| chosen.iter().map(|other| other.distance(color)).fold(f64::INFINITY, f64::min);
            let furthest = steps.max_by(|one, other| nearest(*one).total_cmp(&nearest(*other)));
            chosen.extend(furthest);
        }
        Self::sorted(std::array::from_fn(|index| chosen[index]))
    }

    pub(super) fn sorted(mut colors: [Oklab; COLORS]) -> Self {
        colors.sort_by(|one, other| one.l.total_cmp(&other.l));
        Self(colors)
    }

    /// The most saturated color. Among equally saturated ones, the one with the more medium
    /// lightness.
    fn accent(&self) -> Oklab {
        let strength = |color: &Oklab| color.chroma() - 0.1 * (color.l - 0.6).abs();
        self.0.iter().copied().max_by(|one, other| strength(one).total_cmp(&strength(other))).unwrap_or(self.0[0])
    }
}

/// The sum and the number of colors per cell.
type Cells = BTreeMap<(i32, i32, i32), (Oklab, f64)>;

impl Oklab {
    fn plus(self, other: Self) -> Self {
        Self { l: self.l + other.l, a: self.a + other.a, b: self.b + other.b }
    }

    fn scaled(self, by: f64) -> Self {
        Self { l: self.l * by, a: self.a * by, b: self.b * by }
    }
}

/// Counts the colors of an image, except for mostly transparent pixels.
fn count(image: &Bitmap, cells: &mut Cells) {
    let channels = image.channels();
    let samples =
        |length: u32| (0..SAMPLES.min(length)).map(move |index| (2 * index + 1) * length / (2 * SAMPLES.min(length)));
    for y in samples(image.height()) {
        let row = &image.pixels()[y as usize * image.stride()..][..image.stride()];
        for x in samples(image.width()) {
            let pixel = &row[x as usize * channels.count()..][..channels.count()];
            if channels == Channels::Rgba && pixel[3] < 128 {
                continue;
            }
            let color = Oklab::from_rgb([pixel[0], pixel[1], pixel[2]]);
            let cell = [color.l, color.a, color.b].map(|value| (value * CELLS).floor() as i32);
            let (sum, weight) = cells.entry((cell[0], cell[1], cell[2])).or_insert((color.scaled(0.0), 0.0));
            *sum = sum.plus(color);
            *weight += 1.0;
        }
    }
}

/// Clusters colors by k-means. The first cluster starts at the color with the largest weight, each
/// further one at the color with the largest product of weight and distance from the previous ones.
fn cluster(colors: &[(Oklab, f64)]) -> Vec<(Oklab, f64)> {
    let heaviest = colors.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    let mut centers: Vec<Oklab> = heaviest.map(|(color, _)| *color).into_iter().collect();
    let mut distances: Vec<f64> = colors.iter().map(|_| f64::INFINITY).collect();
    while centers.len() < CLUSTERS.min(colors.len()) {
        let newest = centers[centers.len() - 1];
        for (distance, (color, _)) in distances.iter_mut().zip(colors) {
            *distance = distance.min(color.distance(newest));
        }
        let pull = |index: &usize| distances[*index] * colors[*index].1.sqrt();
        let Some(next) = (0..colors.len()).max_by(|one, other| pull(one).total_cmp(&pull(other))) else { break };
        centers.push(colors[next].0);
    }
    let mut clusters = Vec::new();
    for _ in 0..ROUNDS {
        clusters = vec![(centers[0].scaled(0.0), 0.0); centers.len()];
        for (color, weight) in colors {
            let nearest = (0..centers.len())
                .min_by(|one, other| centers[*one].distance(*color).total_cmp(&centers[*other].distance(*color)))
                .unwrap_or(0);
            let (sum, all) = &mut clusters[nearest];
            *sum = sum.plus(color.scaled(*weight));
            *all += weight;
        }
        clusters.retain(|(_, weight)| *weight > 0.0);
        clusters.iter_mut().for_each(|(sum, weight)| *sum = sum.scaled(1.0 / *weight));
        centers = clusters.iter().map(|(center, _)| *center).collect();
    }
    clusters
}

/// The colors in which a frame is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Theme {
    /// The background.
    pub(super) ground: Color,
    /// The color of text.
    pub(super) ink: Color,
    /// The color of less important text.
    pub(super) muted: Color,
    /// The color of thin lines.
    pub(super) line: Color,
    /// The background of images that do not fill their tile.
    pub(super) matte: Color,
    /// The color of emphasized elements.
    pub(super) accent: Color,
    /// The color of text on the accent color.
    pub(super) on_accent: Color,
}

impl Theme {
    /// The theme of an output. Four successive outputs have different backgrounds, so that they are
    /// easy to distinguish.
    pub(super) fn new(palette: &Palette, output: u32) -> Self {
        let accent = palette.accent();
        let (ground, is_light) = match output % 4 {
            0 => (accent.toned(0.975, 0.006), true),
            1 => (accent.toned(0.215, 0.018), false),
            2 => (accent.toned(0.915, 0.040), true),
            _ => (accent.toned(0.345, 0.075), false),
        };
        let ink = accent.toned(if is_light { 0.235 } else { 0.965 }, 0.015);
        let strong =
            Oklab { l: if is_light { accent.l.clamp(0.40, 0.55) } else { accent.l.clamp(0.74, 0.88) }, ..accent };
        let on_accent = accent.toned(if strong.l > 0.65 { 0.2 } else { 0.985 }, 0.012);
        let matte = ground.toned(if is_light { (ground.l + 0.05).min(0.995) } else { ground.l + 0.05 }, 0.05);
        Self {
            ground: ground.color(),
            ink: ink.color(),
            muted: ink.mixed(ground, if is_light { 0.34 } else { 0.30 }).color(),
            line: ink.mixed(ground, 0.80).color(),
            matte: matte.color(),
            accent: strong.color(),
            on_accent: on_accent.color(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::oklab::contrast;
    use super::*;
    use raster::Size;

    use crate::testing::{drawn, photo, quarters};

    fn of(images: &[Bitmap]) -> Palette {
        Palette::new(images, &Seed::from_parts(&[b"seed"]))
    }

    #[test]
    fn every_large_color_of_an_image_is_in_its_palette() {
        let palette = of(&[quarters(200, 100)]);
        for rgb in [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]] {
            assert!(palette.0.iter().any(|color| color.color().rgb() == rgb), "{rgb:?} in {palette:?}");
        }
    }

    #[test]
    fn a_little_of_a_strong_color_is_not_lost() {
        let speck = drawn(200, 200, Channels::Rgb, |x, y| match x < 30 && y < 30 {
            true => [230, 40, 30, 255],
            false => [120 + (x / 8) as u8, 120 + (x / 8) as u8, 122 + (x / 8) as u8, 255],
        });
        assert!(of(&[speck]).0.iter().any(|color| color.chroma() > 0.15));
    }

    #[test]
    fn palettes_are_whole_distinct_and_sorted_whatever_the_image() {
        let plain = |rgba| Bitmap::filled(Size::new(1, 1), Channels::Rgba, rgba);
        let grey = plain(Color { r: 128, g: 128, b: 128, a: 255 });
        for palette in
            [of(&[grey]), of(&[plain(Color::WHITE)]), of(&[photo(64, 64)]), of(&[]), of(&[plain(Color::TRANSPARENT)])]
        {
            for (one, other) in palette.0.iter().zip(&palette.0[1..]) {
                assert!(one.l <= other.l);
                assert!(one.distance(*other) > 0.001, "{palette:?}");
            }
        }
    }

    #[test]
    fn transparent_pixels_have_no_color() {
        let half = drawn(50, 50, Channels::Rgba, |x, _| if x < 25 { [255, 0, 0, 255] } else { [0, 0, 255, 0] });
        assert!(of(&[half]).0.iter().all(|color| color.b > -0.1));
    }

    #[test]
    fn text_can_be_read_on_every_ground() {
        for index in 0..200_u32 {
            let palette = Palette::harmony(&mut Seed::from_parts(&[&index.to_le_bytes()]));
            for output in 0..4 {
                let theme = Theme::new(&palette, output);
                assert!(contrast(theme.ink, theme.ground) >= 7.0, "{theme:?}");
                assert!(contrast(theme.muted, theme.ground) >= 4.5, "{theme:?}");
                assert!(contrast(theme.on_accent, theme.accent) >= 4.0, "{theme:?}");
            }
        }
    }
}

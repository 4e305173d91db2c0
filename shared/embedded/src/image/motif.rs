//! Compositions for frames without references. There are four kinds, varied by a seed.

use kurbo::BezPath;

use super::oklab::Oklab;
use super::palette::{COLORS, Palette};
use super::seed::Seed;
use super::vector::{Area, disc, ground, quarter, rounded};
use raster::text::{fill_path, fill_rect};
use raster::{Bitmap, Channels, Color, Size};

/// Draws a composition in the colors of a palette. The outputs of one seed are of different kinds.
pub(super) fn compose(size: Size, palette: &Palette, seed: &Seed, output: u32) -> Bitmap {
    let mut seed = seed.clone();
    let first = seed.below(4);
    for _ in 0..output {
        seed.below(2);
    }
    let mut stage = Stage {
        image: Bitmap::filled(size, Channels::Rgb, palette.0[COLORS - 1].color()),
        width: f64::from(size.width),
        height: f64::from(size.height),
        colors: palette.0,
    };
    match (first + output as usize) % 4 {
        0 => stage.hills(&mut seed),
        1 => stage.tiles(&mut seed),
        2 => stage.arches(&mut seed),
        _ => stage.orbits(&mut seed),
    }
    stage.image
}

struct Stage {
    image: Bitmap,
    width: f64,
    height: f64,
    /// The colors from dark to light.
    colors: [Oklab; COLORS],
}

impl Stage {
    fn paint(&mut self, path: BezPath, color: Color) {
        fill_path(&mut self.image, path, color);
    }

    fn color(&self, index: usize) -> Color {
        self.colors[index.min(COLORS - 1)].color()
    }

    fn short(&self) -> f64 {
        self.width.min(self.height)
    }

    /// The most saturated color.
    fn accent(&self) -> Oklab {
        self.colors.into_iter().max_by(|one, other| one.chroma().total_cmp(&other.chroma())).unwrap_or(self.colors[2])
    }

    /// Fills the rows with a gradient between two colors.
    fn sky(&mut self, from: Oklab, to: Oklab) {
        let (width, height) = (u64::from(self.image.width()), self.image.height());
        for y in 0..height {
            let color = from.mixed(to, f64::from(y) / f64::from(height)).color();
            fill_rect(&mut self.image, 0, i64::from(y), width, 1, color);
        }
    }

    /// A landscape: a sun over hills that get darker towards the viewer.
    fn hills(&mut self, seed: &mut Seed) {
        let [dark, .., soft, pale] = self.colors;
        self.sky(pale.mixed(soft, 0.35), pale);
        let radius = self.short() * seed.between(0.11, 0.17);
        let sun = (self.width * seed.between(0.2, 0.8), self.height * seed.between(0.24, 0.42));
        let accent = self.accent();
        self.paint(disc(sun, radius), accent.toned(accent.l.max(0.66), 0.2).color());
        let layers = 5;
        for layer in 0..layers {
            let near = f64::from(layer) / f64::from(layers - 1);
            let middle = self.height * (0.46 + 0.40 * near);
            let rise = self.height * (0.13 - 0.06 * near);
            let steps = 3 + seed.below(3);
            let step = self.width / steps as f64;
            let shift = seed.between(-0.5, 0.0) * step;
            let points: Vec<(f64, f64)> = (0..steps + 2)
                .map(|index| (shift + step * index as f64, middle + rise * seed.between(-1.0, 1.0)))
                .collect();
            let color = soft.mixed(dark, 0.10 + 0.90 * near);
            // In between, hills alternate between the hues in the middle of the palette.
            let tint = self.colors[if layer % 2 == 0 { 1 } else { 2 }];
            let color = Oklab { l: color.l, ..color.mixed(tint, 0.45 * (1.0 - near)) };
            self.paint(ground(&points, self.height + 1.0), color.color());
        }
    }

    /// A pattern of squares, quarters and discs.
    fn tiles(&mut self, seed: &mut Seed) {
        let cell = self.short() / (4 + seed.below(2)) as f64;
        let (columns, rows) = ((self.width / cell).round().max(1.0), (self.height / cell).round().max(1.0));
        for row in 0..rows as usize {
            for column in 0..columns as usize {
                let edge = |index: usize, of: f64, length: f64| (index as f64 * length / of).round();
                let (x, y) = (edge(column, columns, self.width), edge(row, rows, self.height));
                let (right, bottom) = (edge(column + 1, columns, self.width), edge(row + 1, rows, self.height));
                self.tile(Area::new(x, y, right - x, bottom - y), seed);
            }
        }
    }

    fn tile(&mut self, area: Area, seed: &mut Seed) {
        // Pale colors are twice as likely, so that the pattern has empty areas.
        let below = [4, 4, 3, 3, 2, 1, 0][seed.below(7)];
        let above = (below + 1 + seed.below(COLORS - 1)) % COLORS;
        let (below, above) = (self.color(below), self.color(above));
        let Area { x, y, width, height } = area;
        self.paint(rounded(area, 0.0), below);
        let corners = [
            (x, y, 1.0, 1.0),
            (area.right(), y, -1.0, 1.0),
            (area.right(), area.bottom(), -1.0, -1.0),
            (x, area.bottom(), 1.0, -1.0),
        ];
        let turn = seed.below(4);
        let (cx, cy, across, down) = corners[turn];
        match seed.below(8) {
            0 | 1 => self.paint(quarter((cx, cy), across * width, down * height), above),
            2 => {
                self.paint(quarter((cx, cy), across * width, down * height), above);
                self.paint(quarter((cx, cy), across * width / 2.0, down * height / 2.0), below);
            }
            3 => self.paint(disc((x + width / 2.0, y + height / 2.0), width.min(height) * 0.36), above),
            4 => {
                // Two quarters from opposite corners form a leaf shape.
                let (ox, oy, over, up) = corners[(turn + 2) % 4];
                self.paint(quarter((cx, cy), across * width / 2.0, down * height / 2.0), above);
                self.paint(quarter((ox, oy), over * width / 2.0, up * height / 2.0), above);
            }
            5 => {
                let half = if turn.is_multiple_of(2) {
                    Area { width: width / 2.0, ..area }
                } else {
                    Area { height: height / 2.0, ..area }
                };
                self.paint(rounded(half, 0.0), above);
            }
            _ => {}
        }
    }

    /// Nested arches on the ground, and a disc.
    fn arches(&mut self, seed: &mut Seed) {
        let [dark, rich, middle, soft, pale] = self.colors;
        self.sky(pale, pale.mixed(soft, 0.5));
        let center = self.width * seed.between(0.34, 0.66);
        let outer = self.short() * seed.between(0.40, 0.46);
        let floor = self.height * 0.86;
        let side = if center > self.width / 2.0 { 0.15 } else { 0.85 };
        let accent = self.accent();
        self.paint(disc((self.width * side, self.height * 0.22), self.short() * 0.09), accent.color());
        let rings = 4 + seed.below(2);
        let rise = self.height * seed.between(0.12, 0.2);
        let order = [rich, soft, middle, pale, dark, soft];
        for ring in 0..rings {
            let radius = outer * (1.0 - ring as f64 / rings as f64);
            let arch = Area::new(center - radius, floor - rise - radius, 2.0 * radius, radius + rise + radius);
            self.paint(rounded(arch, radius), order[ring % order.len()].color());
        }
        let base = Area::new(-1.0, floor, self.width + 2.0, self.height - floor + 1.0);
        self.paint(rounded(base, 0.0), dark.mixed(rich, 0.2).color());
    }

    /// Large translucent overlapping discs.
    fn orbits(&mut self, seed: &mut Seed) {
        let [dark, .., soft, pale] = self.colors;
        self.sky(pale, pale.mixed(soft, 0.7));
        let order = [self.accent(), self.colors[1], self.colors[3], dark, self.colors[2]];
        for (index, color) in order.into_iter().enumerate() {
            let radius = self.short() * seed.between(0.16, 0.40) / (1.0 + 0.12 * index as f64);
            let center = (self.width * seed.between(0.12, 0.88), self.height * seed.between(0.15, 0.85));
            self.paint(disc(center, radius), Color { a: 190, ..color.color() });
        }
    }
}

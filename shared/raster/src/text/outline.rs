//! Converts glyphs to shapes: their outlines at the position and size at which they are drawn.

use kurbo::{BezPath, Join, StrokeOpts};
use skrifa::color::{Brush, ColorGlyphFormat, ColorPainter, CompositeMode, Transform};
use skrifa::instance::{LocationRef, Size as FontSize};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::raw::types::BoundingBox;
use skrifa::{GlyphId, MetadataProvider};

use super::coverage::{FLATNESS, Shape};
use super::shape::Glyph;
use crate::color::Color;

/// The maximum distance of a glyph's outline from its origin, in em. The widest ligature of the
/// bundled fonts takes 18. A test checks every glyph.
pub(super) const REACH_EM: f64 = 20.0;

/// The palette index that represents the text color (OpenType, COLR).
const FOREGROUND: u16 = 0xffff;

/// A glyph with its position in an image.
#[derive(Clone, Copy)]
pub(super) struct Placed<'a> {
    pub(super) glyph: &'a Glyph,
    /// The position of its origin in pixels from the left and the top.
    pub(super) x: f64,
    pub(super) y: f64,
    /// Pixels per em.
    pub(super) size: f64,
}

/// A layer of a color glyph. Without a color it has that of the text.
pub(super) struct Layer {
    id: GlyphId,
    pub(super) color: Option<Color>,
}

impl Placed<'_> {
    /// The layers from bottom to top; empty for a plain glyph.
    pub(super) fn layers(&self) -> Vec<Layer> {
        let tables = &self.glyph.face.tables;
        let mut layers = Layers::default();
        if let Some(glyph) = tables.color_glyphs().get_with_format(self.glyph.id, ColorGlyphFormat::ColrV0) {
            glyph
                .paint(LocationRef::default(), &mut layers)
                .expect("the bundled fonts are valid: a test paints each glyph");
        }
        let palettes = tables.color_palettes();
        let palette = palettes.get(0);
        let color_of = |(id, index, alpha): (GlyphId, u16, f32)| {
            let record = palette.as_ref().and_then(|palette| palette.colors().get(usize::from(index)).copied());
            let color = record.filter(|_| index != FOREGROUND).map(|record| Color {
                r: record.red,
                g: record.green,
                b: record.blue,
                a: (f32::from(record.alpha) * alpha).round() as u8,
            });
            Layer { id, color }
        };
        layers.0.into_iter().map(color_of).collect()
    }

    /// Adds the glyph's outline to `shape`.
    pub(super) fn fill(&self, shape: &mut Shape) {
        shape.add(self.outline(self.glyph.id));
    }

    /// Adds the outline of a layer to `shape`.
    pub(super) fn fill_layer(&self, layer: &Layer, shape: &mut Shape) {
        shape.add(self.outline(layer.id));
    }

    /// Adds a stroke of `width` pixels along the glyph's outline, or along those of its layers, to
    /// `shape`.
    pub(super) fn stroke(&self, width: f64, shape: &mut Shape) {
        let style = kurbo::Stroke::new(width).with_join(Join::Round);
        let mut along = |outline: BezPath| {
            shape.add(kurbo::stroke(outline, &style, &StrokeOpts::default(), FLATNESS));
        };
        let layers = self.layers();
        match layers.is_empty() {
            true => along(self.outline(self.glyph.id)),
            false => layers.iter().for_each(|layer| along(self.outline(layer.id))),
        }
    }

    fn outline(&self, id: GlyphId) -> BezPath {
        let face = self.glyph.face;
        let mut pen = Pen { path: BezPath::new(), x: self.x, y: self.y, scale: self.size / face.units_per_em };
        if let Some(outline) = face.tables.outline_glyphs().get(id) {
            outline
                .draw(DrawSettings::unhinted(FontSize::unscaled(), LocationRef::default()), &mut pen)
                .expect("the bundled fonts are valid: a test draws each glyph");
        }
        pen.path
    }
}

/// Converts an outline from font units with an upward axis to pixels with a downward axis.
struct Pen {
    path: BezPath,
    x: f64,
    y: f64,
    scale: f64,
}

impl Pen {
    fn point(&self, x: f32, y: f32) -> kurbo::Point {
        kurbo::Point::new(self.x + f64::from(x) * self.scale, self.y - f64::from(y) * self.scale)
    }
}

impl OutlinePen for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.point(x, y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.point(x, y));
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.path.quad_to(self.point(cx, cy), self.point(x, y));
    }

    fn curve_to(&mut self, cx0: f32, cy0: f32, cx1: f32, cy1: f32, x: f32, y: f32) {
        self.path.curve_to(self.point(cx0, cy0), self.point(cx1, cy1), self.point(x, y));
    }

    fn close(&mut self) {
        self.path.close_path();
    }
}

/// Collects the layers of a COLR version 0 glyph, which consists of filled outlines of one color
/// each.
#[derive(Default)]
struct Layers(Vec<(GlyphId, u16, f32)>);

impl ColorPainter for Layers {
    fn fill_glyph(&mut self, glyph_id: GlyphId, _brush_transform: Option<Transform>, brush: Brush<'_>) {
        if let Brush::Solid { palette_index, alpha } = brush {
            self.0.push((glyph_id, palette_index, alpha));
        }
    }

    fn push_transform(&mut self, _transform: Transform) {}
    fn pop_transform(&mut self) {}
    fn push_clip_glyph(&mut self, _glyph_id: GlyphId) {}
    fn push_clip_box(&mut self, _clip_box: BoundingBox<f32>) {}
    fn pop_clip(&mut self) {}
    fn fill(&mut self, _brush: Brush<'_>) {}
    fn push_layer(&mut self, _composite_mode: CompositeMode) {}
}

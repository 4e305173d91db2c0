//! The layout of a frame: stage, text and caption on one grid.

use super::block::{BODY, Block, CAPTION, Face, HEADLINE, LABEL, VALUE};
use super::headline::Headline;
use super::palette::{COLORS, Palette, Theme};
use super::swatch::hex;
use super::vector::{Area, rounded};
use raster::text::{Align, Style, fill_path, fill_rect, layout, line_breaks};
use raster::{Bitmap, Size};

/// The aspect ratio from which the text is beside the stage instead of below it.
const WIDE: f64 = 1.18;

/// The sizes to try for headlines, relative to the body size.
const HEADLINES: [f64; 6] = [3.0, 2.55, 2.15, 1.8, 1.5, 1.25];

/// The sizes to try for the body, relative to the body size: larger ones if there is room, the
/// smallest for long prompts.
const BODIES: [f64; 4] = [1.3, 1.14, 1.0, 0.86];

/// The maximum size of the body relative to the headline.
const BODY_SHARE: f64 = 0.7;

/// The maximum line length of the body relative to its font size: about seventy letters.
const MEASURE: f64 = 35.0;

/// The basic lengths of the layout, in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// The distance between the edge of the frame and its content.
    pub(super) margin: f64,
    /// The distance between blocks.
    pub(super) gap: f64,
    /// The font size of the caption.
    pub(super) caption: f64,
    /// The font size of the body.
    pub(super) body: f64,
    /// The radius of rounded corners.
    pub(super) radius: f64,
}

impl Scale {
    /// The lengths for a frame. They are proportional to its shorter side, but font sizes stay
    /// readable.
    pub(super) fn for_size(size: Size) -> Self {
        let short = f64::from(size.width.min(size.height));
        Self {
            margin: short * 0.047,
            gap: short * 0.026,
            caption: (short * 0.0172).max(10.0),
            body: (short * 0.0235).max(12.0),
            radius: short * 0.010,
        }
    }
}

/// The texts of a frame.
pub(super) struct Text<'a> {
    pub(super) words: &'a Headline,
    pub(super) model: &'a str,
    /// The operation and the size.
    pub(super) facts: &'a str,
    /// The number of the output and of all outputs; empty if there is only one.
    pub(super) counter: &'a str,
    /// The maximum share of the frame's height for text below the stage.
    pub(super) share: f64,
}

/// A block with its position.
struct Placed {
    block: Block,
    x: f64,
    y: f64,
}

/// The layout of a frame.
pub(super) struct Page {
    /// The area of the images.
    pub(super) stage: Area,
    scale: Scale,
    tag: Option<Placed>,
    counter: Option<Placed>,
    headline: Option<Placed>,
    body: Option<Placed>,
    model: Option<Placed>,
    facts: Option<Placed>,
    /// The area of the palette.
    swatches: Area,
    /// The thin line above the caption.
    line: Area,
}

impl Page {
    /// Lays out a frame. `ratio` is the preferred aspect ratio of the stage. `is_mirrored`
    /// exchanges the sides of stage and text.
    pub(super) fn new(size: Size, text: &Text<'_>, ratio: f64, is_mirrored: bool) -> Self {
        let scale = Scale::for_size(size);
        let frame = Area::new(0.0, 0.0, f64::from(size.width), f64::from(size.height));
        let inner = frame.inset(scale.margin);
        match frame.width >= WIDE * frame.height {
            true => Self::side_by_side(inner, scale, text, ratio, is_mirrored),
            false => Self::below(inner, scale, text, ratio, is_mirrored),
        }
    }

    /// Lays out stage and text side by side.
    fn side_by_side(inner: Area, scale: Scale, text: &Text<'_>, ratio: f64, is_mirrored: bool) -> Self {
        let gap = scale.gap * 1.5;
        let width = (inner.height * ratio).clamp(inner.width * 0.46, inner.width * 0.64).round();
        let rest = inner.width - width - gap;
        let (stage_x, text_x) =
            if is_mirrored { (inner.x + rest + gap, inner.x) } else { (inner.x, inner.x + width + gap) };
        let stage = Area { x: stage_x, width, ..inner };
        let column = Area { x: text_x, width: rest.max(1.0), ..inner };
        let header = scale.header();
        let lines = 2.0 * scale.caption * CAPTION.line_height;
        let footer = scale.swatches() + scale.gap * 1.2 + lines;
        let room = column.height - header - footer - 2.5 * scale.gap;
        let (headline, body) = set(text.words, scale, column.width, room, 0.62);
        let mut page = Self::new_in(scale, column, stage, text);
        page.line = Area { y: column.bottom() - lines - scale.gap * 0.6, height: scale.hairline(), ..column };
        page.caption(text, column.x, column.bottom() - lines, column.width);
        let swatches = column.width.min(scale.caption * 32.0);
        page.swatches = Area { y: column.bottom() - footer, width: swatches, height: scale.swatches(), ..column };
        page.write(headline, body, column, column.y + header + 1.5 * scale.gap);
        page
    }

    /// Lays out the stage above the text.
    fn below(inner: Area, scale: Scale, text: &Text<'_>, ratio: f64, is_mirrored: bool) -> Self {
        let header = scale.header() + scale.gap * 0.7;
        let footer = scale.swatches() + scale.gap * 0.7;
        let room = inner.height - header - footer - 2.5 * scale.gap;
        let (headline, body) = set(text.words, scale, inner.width, room * text.share, 0.60);
        let written =
            [&headline, &body].into_iter().flatten().map(|block| block.height() + scale.gap * 0.6).sum::<f64>();
        // If the images would be cropped too much, the stage is made at most half as high again
        // as they need.
        let height = (room - written + scale.gap * 0.6).min(inner.width / ratio * 1.6).max(room * 0.4).max(1.0).round();
        let (stage_y, text_y) = match is_mirrored {
            true => (inner.bottom() - footer - scale.gap - height, inner.y + header + scale.gap * 0.4),
            false => (inner.y + header, inner.y + header + height + scale.gap),
        };
        let stage = Area { y: stage_y, height, ..inner };
        let mut page = Self::new_in(scale, inner, stage, text);
        let top = inner.bottom() - scale.swatches();
        page.line = Area { y: top - scale.gap * 0.7, height: scale.hairline(), ..inner };
        let swatches = (inner.width * 0.52).min(scale.caption * 24.0);
        page.swatches = Area::new(inner.right() - swatches, top, swatches, scale.swatches());
        page.caption(text, inner.x, top, inner.width - swatches - scale.gap);
        page.write(headline, body, inner, text_y);
        page
    }

    /// Creates a page with the tag and the counter at the top of `column`.
    fn new_in(scale: Scale, column: Area, stage: Area, text: &Text<'_>) -> Self {
        let line = |text: &str, face: Face| {
            Block::fitted(text, face, &[scale.caption], column.width / 2.0, scale.caption * 1.5)
        };
        let y = column.y + scale.caption * 0.2;
        let tag = line("Sketch", LABEL).map(|block| Placed { x: column.x + scale.caption * 0.7, y, block });
        let counter = Some(text.counter).filter(|it| !it.is_empty()).and_then(|counter| line(counter, CAPTION));
        let counter = counter.map(|block| Placed { x: column.right() - block.text_width(), y, block });
        let nothing = Area::new(0.0, 0.0, 0.0, 0.0);
        Self {
            stage,
            scale,
            tag,
            counter,
            headline: None,
            body: None,
            model: None,
            facts: None,
            swatches: nothing,
            line: nothing,
        }
    }

    /// Adds the two lines of the caption.
    fn caption(&mut self, text: &Text<'_>, x: f64, y: f64, width: f64) {
        let size = self.scale.caption;
        let line = |text: &str, face: Face| Block::fitted(text, face, &[size], width, size * 1.5);
        self.model = line(text.model, LABEL).map(|block| Placed { block, x, y });
        self.facts = line(text.facts, CAPTION).map(|block| Placed { block, x, y: y + size * LABEL.line_height });
    }

    fn write(&mut self, headline: Option<Block>, body: Option<Block>, column: Area, mut y: f64) {
        if let Some(block) = headline {
            let height = block.height() + self.scale.gap * 0.6;
            self.headline = Some(Placed { block, x: column.x, y });
            y += height;
        }
        self.body = body.map(|block| Placed { block, x: column.x, y });
    }

    /// Draws everything except the stage.
    pub(super) fn draw(&self, image: &mut Bitmap, theme: &Theme, palette: &Palette) {
        let scale = self.scale;
        if let Some(tag) = &self.tag {
            let padding = scale.caption * 0.7;
            let pill = Area::new(tag.x - padding, tag.y, tag.block.text_width() + 2.0 * padding, tag.block.height());
            fill_path(
                image,
                rounded(
                    Area { y: pill.y - scale.caption * 0.12, height: pill.height + scale.caption * 0.24, ..pill },
                    scale.caption,
                ),
                theme.accent,
            );
        }
        for (placed, color) in [
            (&self.tag, theme.on_accent),
            (&self.counter, theme.muted),
            (&self.headline, theme.ink),
            (&self.body, theme.ink),
            (&self.model, theme.ink),
            (&self.facts, theme.muted),
        ] {
            if let Some(Placed { block, x, y }) = placed {
                block.draw(image, *x, *y, color);
            }
        }
        let line = self.line.pixels(image.width(), image.height());
        let (width, height) = (u64::from(line.size.width), u64::from(line.size.height));
        fill_rect(image, i64::from(line.x), i64::from(line.y), width, height, theme.line);
        self.draw_palette(image, theme, palette);
    }

    /// Draws the five color fields with their values below.
    fn draw_palette(&self, image: &mut Bitmap, theme: &Theme, palette: &Palette) {
        let (area, scale) = (self.swatches, self.scale);
        let gap = scale.caption * 0.4;
        let width = (area.width - gap * (COLORS - 1) as f64) / COLORS as f64;
        let height = scale.caption * 1.6;
        for (index, color) in palette.0.iter().enumerate() {
            let color = color.color();
            let x = area.x + index as f64 * (width + gap);
            let field = Area::new(x, area.y, width, height);
            // The border makes a field of the background color visible.
            fill_path(image, rounded(field.inset(-scale.hairline()), scale.radius * 0.6), theme.line);
            fill_path(image, rounded(field, scale.radius * 0.6), color);
            let size = (scale.caption * 0.72).min(width / 4.3);
            if size >= 8.0 {
                let value = Block::new(&hex(color), VALUE, size, width + gap, 1);
                value.draw(image, x, area.y + height + scale.caption * 0.25, theme.muted);
            }
        }
    }
}

impl Scale {
    /// The height of the row with the tag.
    fn header(&self) -> f64 {
        self.caption * 1.8
    }

    /// The height of the palette's fields and values.
    fn swatches(&self) -> f64 {
        self.caption * 2.85
    }

    /// The width of thin lines in whole pixels, so that they are sharp.
    pub(super) fn hairline(&self) -> f64 {
        (self.caption / 14.0).round().max(1.0)
    }
}

/// Lays out headline and body in a column of size `width` by `height`. If there is a body, the
/// headline takes at most `share` of the height.
fn set(words: &Headline, scale: Scale, width: f64, height: f64, share: f64) -> (Option<Block>, Option<Block>) {
    let widest = widest_word(&words.headline);
    let sizes: Vec<f64> = HEADLINES.iter().map(|size| size * scale.body).collect();
    // A larger size must not cause a word to be broken. Only the smallest size may break words.
    let fitting = sizes.iter().position(|size| size * widest <= width).unwrap_or(sizes.len() - 1);
    let most = if words.body.is_empty() { height } else { height * share };
    let headline = Block::fitted(&words.headline, HEADLINE, &sizes[fitting..], width, most);
    let Some(headline) = headline else { return (None, None) };
    let left = height - headline.height() - scale.gap * 0.6;
    // The headline must stay clearly larger than the body.
    let most = headline.size() * BODY_SHARE;
    let (smallest, larger) = (BODIES[BODIES.len() - 1], BODIES.iter().filter(|size| **size * scale.body <= most));
    let mut sizes: Vec<f64> = larger.map(|size| size * scale.body).collect();
    if sizes.is_empty() {
        sizes.push(smallest * scale.body);
    }
    let body = Some(words.body.as_str()).filter(|body| !body.is_empty());
    let body = body.and_then(|body| Block::fitted(body, BODY, &sizes, width.min(MEASURE * scale.body), left));
    (Some(headline), body)
}

/// The width of the widest part of a headline that must not be broken, in em.
fn widest_word(text: &str) -> f64 {
    let style = Style {
        family: HEADLINE.family,
        weight: HEADLINE.weight,
        size: 1.0,
        line_height: HEADLINE.line_height,
        align: Align::Left,
    };
    let mut start = 0;
    line_breaks(text).fold(0.0, |widest, end| {
        // A word that is broken at a soft hyphen shows it.
        let word = text[start..end].trim_end().replace('\u{ad}', "-");
        start = end;
        f64::max(widest, layout(&word, &style, None).width())
    })
}

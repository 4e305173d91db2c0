//! The geometry of nodes that renders draw by, and that the service sizes nodes by.

use domain::graph::{Node, NodeType};

/// Height of the title strip below an image, in canvas units.
pub(crate) const CAPTION: f64 = 28.0;
/// Least width and height of an image or video node with a title strip, in canvas units.
const CAPTION_WIDTH_MIN: f64 = 2.0 * CAPTION;
const CAPTION_HEIGHT_MIN: f64 = 3.0 * CAPTION;
/// Least distance from a Section's top edge to its first row, in canvas units.
pub(crate) const HEAD: f64 = 96.0;
/// Font size of a Section's title without `metadata.fontSize`, in canvas units.
const TITLE_SIZE: f64 = 28.0;
/// Greatest distance of a Section's title from its left and right edges, in canvas units.
const TITLE_PAD_MAX: f64 = 44.0;
/// Size of a Section without nodes, in canvas units.
pub(crate) const SECTION_SIZE: (f64, f64) = (640.0, 480.0);
/// Longer side of an image in a node that is sized for it, in canvas units: that of a new image node.
const IMAGE_SIDE: f64 = 320.0;
/// Greatest quotient of the ratios of an image and its area at which the image is stretched into the area. Sizes are
/// whole units, which changes the ratio of an area above a caption by less.
const STRETCH_RATIO_MAX: f64 = 1.01;
/// Greatest quotient of the ratios at which an image above a caption fills its area and loses an edge. It equals the
/// difference that the caption makes in a node with the ratio of its image, up to 16:9.
const FILL_RATIO_MAX: f64 = 1.2;

/// Returns `true` if an image or video node of this size shows its title in a strip at the bottom.
pub(crate) fn has_caption(title: &str, (width, height): (f64, f64)) -> bool {
    !title.trim().is_empty() && height >= CAPTION_HEIGHT_MIN && width >= CAPTION_WIDTH_MIN
}

/// Height of the area that a node of this size has for its image.
pub(crate) fn image_height(title: &str, size: (f64, f64)) -> f64 {
    if has_caption(title, size) { size.1 - CAPTION } else { size.1 }
}

/// How an image is fitted into its area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Stretched, by less than anyone can see.
    Stretched,
    /// Enlarged until it fills the area; two edges are cut off.
    Cropped,
    /// As large as the area shows it whole.
    Contained,
}

impl Fit {
    /// The fit of an image in a node with this title and size; `ratio` is its width over its height.
    pub(crate) fn new(title: &str, size: (f64, f64), ratio: f64) -> Self {
        let quotient = ratio * image_height(title, size) / size.0;
        match quotient.max(1.0 / quotient) {
            off if off <= STRETCH_RATIO_MAX => Self::Stretched,
            off if off <= FILL_RATIO_MAX && has_caption(title, size) => Self::Cropped,
            _ => Self::Contained,
        }
    }
}

/// The height at which an image node of this width and title shows an image whole. `image` is the image's width and
/// height in pixels.
pub fn height_for(image: (f64, f64), title: &str, width: f64) -> f64 {
    let height = (width * image.1 / image.0).round().max(1.0);
    let captioned = height + CAPTION;
    if has_caption(title, (width, captioned)) { captioned } else { height }
}

/// The size of the node that shows an image whole: the image's longer side is 320 units.
pub fn fitted(image: (f64, f64), title: &str) -> (f64, f64) {
    sized(image, title, IMAGE_SIDE)
}

/// [`fitted`] for a node of this type: the longer side is as wide as a node of the type usually is.
pub fn fitted_as(kind: NodeType, shown: (f64, f64), title: &str) -> (f64, f64) {
    sized(shown, title, kind.default_size().0)
}

/// The size of the largest node that shows an image whole and is nowhere larger than `bounds`, so that it covers nothing new. It has no
/// strip for its title where the image is larger without one.
pub fn fitted_within(image: (f64, f64), title: &str, (width, height): (f64, f64)) -> (f64, f64) {
    // The largest with a strip, without one, and below the least width and height of a node with one.
    let candidates = [
        (width, height - CAPTION, CAPTION),
        (width, height, 0.0),
        (width.min(CAPTION_WIDTH_MIN - 1.0), height, 0.0),
        (width, height.min(CAPTION_HEIGHT_MIN - 1.0), 0.0),
    ];
    let sizes =
        candidates.into_iter().filter(|(_, height, _)| *height >= 1.0).filter_map(|(width, height, caption)| {
            let area = largest_area(image, (width, height));
            let size = (area.0, area.1 + caption);
            (has_caption(title, size) == (caption > 0.0)).then_some(size)
        });
    let area = |size: &(f64, f64)| size.0 * size.1;
    sizes.reduce(|best, size| if area(&size) > area(&best) { size } else { best }).unwrap_or((width, height))
}

/// The largest area within these sides that has the ratio of an image. It keeps one of the sides; the other one is rounded to a whole
/// unit, as that of [`height_for`] is.
fn largest_area(image: (f64, f64), (width, height): (f64, f64)) -> (f64, f64) {
    let by_width = (width, (width * image.1 / image.0).round().max(1.0));
    let by_height = ((height * image.0 / image.1).round().max(1.0), height);
    // A side between two whole units is the bound of what was rounded up to the second.
    if width * image.1 <= height * image.0 {
        let tall = (by_height.0 <= width && by_height.0 * height > by_width.0 * by_width.1).then_some(by_height);
        tall.unwrap_or((width, by_width.1.min(height)))
    } else {
        let wide = (by_width.1 <= height && width * by_width.1 > by_height.0 * by_height.1).then_some(by_width);
        wide.unwrap_or((by_height.0.min(width), height))
    }
}

fn sized((width, height): (f64, f64), title: &str, side: f64) -> (f64, f64) {
    let scale = side / width.max(height);
    let [width, height] = [width, height].map(|pixels| (pixels * scale).round().max(1.0));
    let captioned = height + CAPTION;
    (width, if has_caption(title, (width, captioned)) { captioned } else { height })
}

/// `metadata.fontSize` of a node.
pub(crate) fn font_size(node: &Node) -> Option<f64> {
    node.metadata
        .part("fontSize", |metadata| metadata.font_size.as_ref())?
        .as_f64()
        .filter(|size| (1.0..=1000.0).contains(size))
}

/// The title of a Section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SectionTitle {
    pub(crate) font_size: f64,
    /// Distance from the left and right edges.
    pub(crate) pad: f64,
    /// Distance of the baseline from the top edge.
    pub(crate) baseline: f64,
}

impl SectionTitle {
    /// The title of a Section of this height.
    pub(crate) fn new(font_size: Option<f64>, height: f64) -> Self {
        let font_size = font_size.unwrap_or(TITLE_SIZE).min(height / 2.0);
        let pad = font_size.min(TITLE_PAD_MAX);
        Self { font_size, pad, baseline: pad * 0.6 + font_size }
    }
}

/// Distance from a Section's top edge to its first row: room for its title.
pub fn head(section: &Node) -> f64 {
    let title = font_size(section).map(|size| SectionTitle::new(Some(size), f64::INFINITY));
    // The descenders, and some space.
    title.map_or(HEAD, |title| HEAD.max((title.baseline + 0.25 * title.font_size + 12.0).ceil()))
}

#[cfg(test)]
mod tests {
    use domain::limits::NODE_SIDE_MAX;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;

    use super::*;
    use crate::fixture::{section, written};

    #[test]
    fn a_node_is_sized_for_its_image_and_its_caption() {
        assert_eq!(fitted((600.0, 400.0), "Lamp"), (320.0, 213.0 + CAPTION));
        assert_eq!(fitted((600.0, 400.0), " "), (320.0, 213.0));
        assert_eq!(fitted((400.0, 800.0), "Lamp"), (160.0, 320.0 + CAPTION));
        assert_eq!(fitted((1.0, 30000.0), "Lamp"), (1.0, 320.0), "too narrow for a caption");
        assert_eq!(fitted((640.0, 100.0), "Lamp"), (320.0, 50.0), "too low for a caption");
        assert_eq!(height_for((600.0, 400.0), "Lamp", 600.0), 400.0 + CAPTION);
        assert_eq!(height_for((600.0, 400.0), "", 60.0), 40.0);
        assert_eq!(height_for((30000.0, 1.0), "Lamp", 320.0), 1.0);
    }

    #[test]
    fn a_caption_begins_at_56_units_of_width_and_of_image() {
        assert_eq!(height_for((100.0, 100.0), "Lamp", 55.0), 55.0);
        assert_eq!(height_for((100.0, 100.0), "Lamp", 56.0), 84.0);
        assert_eq!(height_for((200.0, 100.0), "Lamp", 110.0), 55.0);
        assert_eq!(height_for((200.0, 100.0), "Lamp", 112.0), 84.0);
    }

    #[test]
    fn a_filled_slot_is_no_larger_than_it_was() {
        let slot = (320.0, 320.0);
        assert_eq!(fitted_within((1024.0, 1024.0), "image", slot), (292.0, 320.0));
        assert_eq!(fitted_within((1024.0, 1024.0), "", slot), (320.0, 320.0));
        assert_eq!(fitted_within((1600.0, 900.0), "image", slot), (320.0, 208.0));
        assert_eq!(fitted_within((900.0, 1600.0), "image", slot), (164.0, 320.0));
        assert_eq!(fitted_within((320.0, 300.0), "image", slot), (311.0, 320.0));
        assert_eq!(fitted_within((320.0, 60.0), "image", slot), (320.0, 88.0));
        assert_eq!(fitted_within((30000.0, 1.0), "image", slot), (320.0, 1.0));
        assert_eq!(fitted_within((1.0, 30000.0), "image", slot), (1.0, 320.0));
    }

    #[test]
    fn the_largest_size_within_a_box_has_a_strip_unless_that_costs_more_than_it_is_worth() {
        for (bounds, image, title, expected) in [
            // Above the strip, 400 × 272 are left.
            ((400.0, 300.0), (2000.0, 1000.0), "Lamp", (400.0, 228.0)),
            ((400.0, 300.0), (1000.0, 2000.0), "Lamp", (136.0, 300.0)),
            ((400.0, 300.0), (1000.0, 2000.0), "", (150.0, 300.0)),
            // Too low or too narrow for a strip.
            ((100.0, 80.0), (100.0, 80.0), "Lamp", (100.0, 80.0)),
            ((55.0, 300.0), (100.0, 100.0), "Lamp", (55.0, 55.0)),
            // 51 × 292 above a strip would be too narrow for one.
            ((320.0, 320.0), (100.0, 570.0), "Lamp", (55.0, 314.0)),
            // Sides between whole units.
            ((320.5, 200.5), (200.0, 100.0), "", (320.5, 160.0)),
            ((320.5, 200.5), (100.0, 100.0), "", (201.0, 200.5)),
            ((1.0, 1.0), (300.0, 100.0), "Lamp", (1.0, 1.0)),
        ] {
            assert_eq!(fitted_within(image, title, bounds), expected, "{bounds:?} {image:?} {title}");
        }
    }

    #[test]
    fn the_head_of_a_section_has_room_for_its_title() {
        let head_of =
            |size: f64| head(&Node { metadata: written(json!({"section": true, "fontSize": size})), ..section("s") });
        assert_eq!(head(&section("s")), HEAD);
        assert_eq!([1.0, 44.0, 100.0, 1000.0].map(head_of), [96.0, 96.0, 164.0, 1289.0]);
    }

    proptest! {
        #[test]
        fn an_image_of_any_ratio_is_shown_whole(
            width in 1..=30_000_u32,
            height in 1..=30_000_u32,
            title in select(vec!["Lamp", "", "  "]),
            at in 1.0..2000.0,
            bounds in (1.0..2000.0, 1.0..2000.0),
        ) {
            let image = (f64::from(width), f64::from(height));
            let followed = (at, height_for(image, title, at));
            let within = fitted_within(image, title, bounds);
            prop_assert!(within.0 <= bounds.0 && within.1 <= bounds.1, "{:?} in {:?}", within, bounds);
            prop_assert_eq!(fitted_within(image, title, within), within, "a size that fits stays");
            for size in [fitted(image, title), within, followed] {
                prop_assert_ne!(Fit::new(title, size, image.0 / image.1), Fit::Cropped, "{:?}", size);
                prop_assert!(size.0 >= 1.0 && size.1 >= 1.0);
            }
            let whole = fitted(image, title);
            prop_assert_eq!(fitted_within(image, title, whole), whole, "as does that of a node made for the image");
            // The caption takes no more than its own height from the image.
            if followed.1 <= NODE_SIDE_MAX && followed.1 >= 200.0 {
                let area = image_height(title, followed);
                prop_assert!((area - at * image.1 / image.0).abs() <= 0.5, "{:?}", followed);
            }
        }
    }
}

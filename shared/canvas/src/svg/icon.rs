//! Icons, 24 units square, drawn around their center.

use super::look::Stage;
use super::xml::{Num, Rgb, put};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Icon {
    /// A landscape in a frame: placeholder of an image.
    Image,
    /// Work at this stage.
    Stage(Stage),
}

impl Icon {
    fn strokes(self) -> &'static str {
        match self {
            Icon::Image => {
                "<rect x=\"-11\" y=\"-9\" width=\"22\" height=\"18\" rx=\"3\"/><circle cx=\"-4.5\" cy=\"-3\" r=\"1.8\"/>\
                 <path d=\"M-11 6L-4 0L1 5L5 1L11 7\"/>"
            }
            Icon::Stage(Stage::Waiting) => "<circle r=\"10\"/><path d=\"M0 -5.5V0L4 2.5\"/>",
            Icon::Stage(Stage::Working) => {
                "<circle r=\"10\" stroke-opacity=\".25\"/><path d=\"M0 -10A10 10 0 0 1 10 0\"/>"
            }
            Icon::Stage(Stage::Failed) => "<circle r=\"10\"/><path d=\"M0 -5V1M0 4.8V5\"/>",
            Icon::Stage(Stage::Stopped) => "<circle r=\"10\"/><path d=\"M-7 7L7 -7\"/>",
        }
    }

    /// Appends the icon, centered on a point.
    pub(super) fn draw(self, out: &mut String, x: f64, y: f64, color: Rgb) {
        put!(
            out,
            "<g transform=\"translate({} {})\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" \
             stroke-linecap=\"round\" stroke-linejoin=\"round\">{}</g>",
            Num(x),
            Num(y),
            self.strokes()
        );
    }
}

//! Sizes, rectangles and anchors, in whole pixels.

use std::str::FromStr;

/// The text of a parameter is not one of the known values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown value")]
pub struct ParseError;

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// The number of columns.
    pub width: u32,
    /// The number of rows.
    pub height: u32,
}

impl Size {
    /// A size of `width` columns and `height` rows.
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// The number of pixels.
    pub const fn pixels(self) -> u64 {
        self.width as u64 * self.height as u64
    }

    /// The size with width and height swapped.
    pub const fn transposed(self) -> Self {
        Self { width: self.height, height: self.width }
    }
}

/// A rectangle of whole pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rect {
    /// Columns left of it.
    pub x: u32,
    /// The number of rows above the rectangle.
    pub y: u32,
    /// The width and height of the rectangle.
    pub size: Size,
}

/// A position: the share of the free space that is to the left of and above a placed rectangle
/// (`docs/reference/actions.md#anchors`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Anchor {
    /// `top-left`
    TopLeft,
    /// `top`
    Top,
    /// `top-right`
    TopRight,
    /// `left`
    Left,
    /// `center`
    #[default]
    Center,
    /// `right`
    Right,
    /// `bottom-left`
    BottomLeft,
    /// `bottom`
    Bottom,
    /// `bottom-right`
    BottomRight,
}

impl Anchor {
    /// All nine, row by row.
    pub const ALL: [Self; 9] = [
        Self::TopLeft,
        Self::Top,
        Self::TopRight,
        Self::Left,
        Self::Center,
        Self::Right,
        Self::BottomLeft,
        Self::Bottom,
        Self::BottomRight,
    ];

    /// The position of `inner` in `outer`, in columns and rows from the top left corner.
    ///
    /// If free space cannot be divided evenly, the additional pixel is on the right or at the
    /// bottom. An `inner` that is larger in a direction has no free space there.
    pub fn place(self, inner: Size, outer: Size) -> (u32, u32) {
        use Anchor::{Bottom, BottomLeft, BottomRight, Center, Left, Right, Top, TopLeft, TopRight};
        let (slack_x, slack_y) = (outer.width.saturating_sub(inner.width), outer.height.saturating_sub(inner.height));
        let x = match self {
            TopLeft | Left | BottomLeft => 0,
            Top | Center | Bottom => slack_x / 2,
            TopRight | Right | BottomRight => slack_x,
        };
        let y = match self {
            TopLeft | Top | TopRight => 0,
            Left | Center | Right => slack_y / 2,
            BottomLeft | Bottom | BottomRight => slack_y,
        };
        (x, y)
    }
}

impl Anchor {
    /// The position of `inner` in `outer`, of which `inner` may be larger: its left and top edge,
    /// which are negative if it extends beyond `outer`.
    ///
    /// If the excess cannot be divided evenly, the additional pixel is on the right or at the
    /// bottom.
    pub(crate) fn place_any(self, inner: (i64, i64), outer: Size) -> (i64, i64) {
        use Anchor::{Bottom, BottomLeft, BottomRight, Center, Left, Right, Top, TopLeft, TopRight};
        let (slack_x, slack_y) = (i64::from(outer.width) - inner.0, i64::from(outer.height) - inner.1);
        let x = match self {
            TopLeft | Left | BottomLeft => 0,
            // Division rounds towards zero, for free space and excess alike.
            Top | Center | Bottom => slack_x / 2,
            TopRight | Right | BottomRight => slack_x,
        };
        let y = match self {
            TopLeft | Top | TopRight => 0,
            Left | Center | Right => slack_y / 2,
            BottomLeft | Bottom | BottomRight => slack_y,
        };
        (x, y)
    }
}

impl FromStr for Anchor {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "top-left" => Ok(Self::TopLeft),
            "top" => Ok(Self::Top),
            "top-right" => Ok(Self::TopRight),
            "left" => Ok(Self::Left),
            "center" => Ok(Self::Center),
            "right" => Ok(Self::Right),
            "bottom-left" => Ok(Self::BottomLeft),
            "bottom" => Ok(Self::Bottom),
            "bottom-right" => Ok(Self::BottomRight),
            _ => Err(ParseError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_anchors_place_and_the_odd_pixel_goes_right_and_down() {
        let (inner, outer) = (Size::new(4, 6), Size::new(9, 9));
        let placed: Vec<_> = Anchor::ALL.iter().map(|anchor| anchor.place(inner, outer)).collect();
        assert_eq!(placed, [(0, 0), (2, 0), (5, 0), (0, 1), (2, 1), (5, 1), (0, 3), (2, 3), (5, 3)]);
    }

    #[test]
    fn what_is_larger_sticks_out_and_the_odd_pixel_goes_right_and_down() {
        let outer = Size::new(4, 6);
        let placed: Vec<_> = Anchor::ALL.iter().map(|anchor| anchor.place_any((9, 9), outer)).collect();
        assert_eq!(placed, [(0, 0), (-2, 0), (-5, 0), (0, -1), (-2, -1), (-5, -1), (0, -3), (-2, -3), (-5, -3)]);
        for anchor in Anchor::ALL {
            let (x, y) = anchor.place(Size::new(4, 6), Size::new(9, 9));
            assert_eq!(anchor.place_any((4, 6), Size::new(9, 9)), (i64::from(x), i64::from(y)));
        }
    }

    #[test]
    fn anchors_are_read_by_name() {
        let names =
            ["top-left", "top", "top-right", "left", "center", "right", "bottom-left", "bottom", "bottom-right"];
        for (name, anchor) in names.iter().zip(Anchor::ALL) {
            assert_eq!(name.parse(), Ok(anchor));
        }
        assert_eq!("middle".parse::<Anchor>(), Err(ParseError));
    }
}

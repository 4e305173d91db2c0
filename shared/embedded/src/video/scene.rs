//! The composition of a video over time.
//!
//! With one frame, the camera zooms in slowly, or pans along the image if it is much longer than
//! the frame. With two frames, the camera drifts over the first, dissolves into the second, and
//! stops when all of it is visible. Without a frame, the camera zooms in on a generated backdrop.
//! Insets and the caption are drawn on top. If the video has a last frame, they fade out before the
//! end.

use raster::Bitmap;
use raster::Color;
use raster::motion::{Camera, WHOLE, frame, mix};

use super::caption::{Caption, Kind};
use super::insets::{Inset, Room};
use super::still::{CLOSEST, Excess, Framing, Still};
use super::{Brief, Error, Which, backdrop};

/// The number of frame-sized buffers that a scene and its painting hold: two stills of up to three
/// frames each, the frame, the frame of the dissolve, its planes, the caption and the insets.
pub const LAYERS: u64 = 14;

/// When one frame dissolves into the other, as fractions of the duration.
const DISSOLVE: (f64, f64) = (0.38, 0.62);

/// Seconds until the caption appears, and for its fade. Both are shorter in a short video.
const LEAD: f64 = 0.5;
/// The limit of `LEAD` as a fraction of the duration.
const LEAD_SHARE: f64 = 0.1;

/// Seconds between two insets, and seconds for the entrance of one.
const STAGGER: f64 = 0.45;
const SETTLE: f64 = 0.6;
/// The fraction of the duration within which all insets appear.
const INSERTED: f64 = 0.6;

/// A still and a camera movement over it.
struct Shot {
    still: Still,
    from: Framing,
    to: Framing,
    pace: Pace,
}

/// The easing of a camera movement from 0 to 1. The functions are polynomials, which give the same
/// results on every machine.
#[derive(Clone, Copy)]
enum Pace {
    /// Starts and ends at rest.
    Whole,
    /// Starts at rest and is still moving when the dissolve ends.
    SetsOff,
    /// Is already moving when the dissolve begins, and ends at rest.
    Rests,
}

impl Pace {
    fn at(self, time: f64) -> f64 {
        match self {
            Self::Whole => eased(time),
            Self::SetsOff => {
                let part = (time / DISSOLVE.1).min(1.0);
                part * part * (2.0 - part)
            }
            Self::Rests => {
                let left = ((1.0 - time) / (1.0 - DISSOLVE.0)).min(1.0);
                1.0 - left * left * (2.0 - left)
            }
        }
    }
}

/// Eases from 0 to 1, at rest at both ends.
fn eased(part: f64) -> f64 {
    let part = part.clamp(0.0, 1.0);
    part * part * (3.0 - 2.0 * part)
}

/// Eases from 0 to 1, fast at first.
fn settling(part: f64) -> f64 {
    let left = 1.0 - part.clamp(0.0, 1.0);
    1.0 - left * left * left
}

/// Everything that a video shows.
pub struct Scene {
    frames: u32,
    seconds: f64,
    shots: Vec<Shot>,
    insets: Vec<Inset>,
    caption: Option<Caption>,
    /// `true` if the caption and the insets fade out before the end.
    clears: bool,
    camera: Camera,
    /// A buffer for the frame of the dissolve.
    other: Bitmap,
}

impl Scene {
    /// Prepares the scene of a video with this many frames.
    ///
    /// # Errors
    ///
    /// [`Error::Image`] for the first image that cannot be decoded.
    pub fn new(brief: &Brief, frames: u32) -> Result<Self, Error> {
        let size = brief.size;
        let first = brief.first.as_ref().map(|file| Still::load(file, Which::First, size)).transpose()?;
        let last = brief.last.as_ref().map(|file| Still::load(file, Which::Last, size)).transpose()?;
        let has_image = first.is_some() || last.is_some();
        let clears = last.is_some();
        // Without images, the prompt is shown as a title.
        let is_title = !has_image && brief.references.is_empty();
        let caption = if is_title { None } else { Caption::new(&brief.prompt, Kind::Caption, size) };
        let room = if has_image {
            Room::Strip
        } else {
            Room::Wall { below: caption.as_ref().map_or(0, |caption| caption.room_below(size.height)) }
        };
        Ok(Self {
            frames,
            seconds: f64::from(brief.seconds),
            shots: shots(first, last, brief),
            insets: Inset::all(&brief.references, room, size)?,
            caption,
            clears,
            camera: Camera::default(),
            other: frame(size, Color::WHITE),
        })
    }

    /// Paints frame number `index`, from 0.
    pub fn paint(&mut self, index: u32, image: &mut Bitmap) {
        let time = f64::from(index) / f64::from(self.frames.saturating_sub(1).max(1));
        let share = eased((time - DISSOLVE.0) / (DISSOLVE.1 - DISSOLVE.0));
        let Self { shots, camera, other, .. } = self;
        let mut look = |shot: &Shot, into: &mut Bitmap| {
            let framing = shot.from.towards(shot.to, shot.pace.at(time));
            camera.shoot(shot.still.image(), shot.still.view(framing), into);
        };
        match &shots[..] {
            [first, ..] if share <= 0.0 => look(first, image),
            [_, second] if share >= 1.0 => look(second, image),
            [first, second] => {
                look(first, image);
                look(second, other);
                mix(image, other, (share * f64::from(WHOLE)).round() as u16);
            }
            shots => shots.iter().for_each(|shot| look(shot, image)),
        }
        self.lay_over(time, image);
    }

    /// Draws the insets and the caption.
    fn lay_over(&self, time: f64, image: &mut Bitmap) {
        let now = time * self.seconds;
        let lead = LEAD.min(self.seconds * LEAD_SHARE);
        // The caption starts to fade before the end and is gone shortly before it.
        let remains = if self.clears { eased((self.seconds - now) / lead - 1.0) } else { 1.0 };
        let stagger = STAGGER.min(self.seconds * INSERTED / self.insets.len().max(1) as f64);
        for (index, inset) in self.insets.iter().enumerate() {
            let since = now - lead - index as f64 * stagger;
            inset.draw(image, settling(since / SETTLE.min(2.0 * lead)), remains);
        }
        if let Some(caption) = &self.caption {
            let shown = eased((now - lead) / lead) * remains;
            caption.draw(image, (shown * 255.0).round() as u8);
        }
    }
}

/// One shot, or two with a dissolve between them.
fn shots(first: Option<Still>, last: Option<Still>, brief: &Brief) -> Vec<Shot> {
    let aside = |still: &Still, far: f64| match still.excess() {
        Excess::Across => Framing { zoom: 1.0, across: far, down: 0.0 },
        Excess::Down => Framing { zoom: 1.0, across: 0.0, down: -far },
        Excess::None => Framing { zoom: CLOSEST, across: far, down: 0.0 },
    };
    match (first, last) {
        (Some(first), Some(last)) => {
            let (out, back) = (aside(&first, 0.8), aside(&last, -0.8));
            vec![
                Shot { still: first, from: Framing::WHOLE, to: out, pace: Pace::SetsOff },
                Shot { still: last, from: back, to: Framing::WHOLE, pace: Pace::Rests },
            ]
        }
        (Some(only), None) => {
            let (from, to) = match only.excess() {
                Excess::None => (Framing::WHOLE, Framing { zoom: CLOSEST, across: 0.3, down: -0.2 }),
                _ => (aside(&only, -0.9), aside(&only, 0.9)),
            };
            vec![Shot { still: only, from, to, pace: Pace::Whole }]
        }
        (None, Some(only)) => {
            let from = aside(&only, -0.8);
            vec![Shot { still: only, from, to: Framing::WHOLE, pace: Pace::Whole }]
        }
        (None, None) => {
            let size = Still::closest(brief.size);
            let mut image = backdrop::paint(&brief.prompt, size);
            if brief.references.is_empty()
                && let Some(title) = Caption::new(&brief.prompt, Kind::Title, size)
            {
                title.draw(&mut image, u8::MAX);
            }
            let still = Still::new(image, brief.size);
            let to = Framing { zoom: CLOSEST, across: 0.0, down: 0.0 };
            vec![Shot { still, from: Framing::WHOLE, to, pace: Pace::Whole }]
        }
    }
}

#[cfg(test)]
mod tests {
    use raster::Size;

    use super::*;

    #[test]
    fn every_pace_begins_and_ends_where_it_should_and_never_goes_back() {
        for (pace, start, end) in [(Pace::Whole, 0.0, 1.0), (Pace::SetsOff, 0.0, 1.0), (Pace::Rests, 0.0, 1.0)] {
            assert!((pace.at(0.0) - start).abs() < 1e-12 && (pace.at(1.0) - end).abs() < 1e-12);
            let steps: Vec<f64> = (0..=1000).map(|step| pace.at(f64::from(step) / 1000.0)).collect();
            assert!(steps.is_sorted());
        }
    }

    #[test]
    fn frames_begin_with_the_first_image_and_end_with_the_last_without_anything_over_them() {
        let size = Size::new(160, 90);
        let flat = |r, g, b| {
            let image = frame(Size::new(320, 180), Color { r, g, b, a: 255 });
            let encoding = raster::Encoding { format: raster::OutputFormat::Png, quality: 100, flatten: Color::WHITE };
            bytes::Bytes::from(raster::encode(&image, &encoding).expect("can be written"))
        };
        let (red, blue) = (flat(200, 20, 30), flat(10, 40, 220));
        let brief = Brief {
            prompt: "from dusk to dawn".to_owned(),
            first: Some(red),
            last: Some(blue),
            references: vec![flat(0, 255, 0)],
            seconds: 2,
            size,
        };
        let mut scene = Scene::new(&brief, 48).expect("decodes");
        let mut shown = |index| {
            let mut image = frame(size, Color::WHITE);
            scene.paint(index, &mut image);
            image
        };
        assert_eq!(shown(0), frame(size, Color { r: 200, g: 20, b: 30, a: 255 }));
        assert_eq!(shown(47), frame(size, Color { r: 10, g: 40, b: 220, a: 255 }));
        let middle = shown(24);
        let [r, _, b, _] = middle.pixel(80, 40).expect("is within");
        assert!((60..150).contains(&r) && (80..180).contains(&b), "half of both: {r} {b}");
        assert!(middle.pixels() != shown(23).pixels(), "it moves");
    }
}

//! What is seen when.
//!
//! With one frame the camera goes slowly into it, or along it when it is much longer than the frame. With two it drifts over
//! the first, dissolves into the second on the way, and comes to rest on all of that. Without any it goes slowly into a
//! backdrop. Over that lie inserts, one after another, and the caption; what has a last frame to end on loses both in time.

use raster::Color;
use raster::Picture;
use raster::motion::{Camera, WHOLE, frame, mix};

use super::caption::{Caption, Kind};
use super::cards::{Card, Room};
use super::stage::{CLOSEST, Excess, Framing, Still};
use super::{Brief, Error, Which, backdrop};

/// Buffers of the frame's size that a scene and its painting hold: two stills of up to three frames each, the
/// frame, the one that is dissolved into it, its planes, caption and inserts.
pub const LAYERS: u64 = 14;

/// When, in shares of the film, one frame dissolves into the other.
const DISSOLVE: (f64, f64) = (0.38, 0.62);

/// Seconds until the caption comes, and until it is there; both are shorter in a short film.
const LEAD: f64 = 0.5;
/// That short, in shares of the film.
const LEAD_SHARE: f64 = 0.1;

/// Seconds from insert to insert, and for one to settle.
const STAGGER: f64 = 0.45;
const SETTLE: f64 = 0.6;
/// The share of the film in which all inserts have come.
const INSERTED: f64 = 0.6;

/// A still and a way of the camera over it.
struct Shot {
    still: Still,
    from: Framing,
    to: Framing,
    pace: Pace,
}

/// How a way is gone, from 0 to 1: polynomials, the same on every machine.
#[derive(Clone, Copy)]
enum Pace {
    /// Sets off and comes to rest.
    Whole,
    /// Sets off, and is left at speed when the dissolve is over.
    SetsOff,
    /// Is met at speed when the dissolve begins, and comes to rest.
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

/// From 0 to 1, at rest at both ends.
fn eased(part: f64) -> f64 {
    let part = part.clamp(0.0, 1.0);
    part * part * (3.0 - 2.0 * part)
}

/// From 0 to 1, fast at first.
fn settling(part: f64) -> f64 {
    let left = 1.0 - part.clamp(0.0, 1.0);
    1.0 - left * left * left
}

/// All that a film shows.
pub struct Scene {
    frames: u32,
    seconds: f64,
    shots: Vec<Shot>,
    cards: Vec<Card>,
    caption: Option<Caption>,
    /// Whether caption and inserts are gone at the end.
    clears: bool,
    camera: Camera,
    /// What is dissolved into the frame.
    other: Picture,
}

impl Scene {
    /// Sets the scene of a film of so many frames.
    ///
    /// # Errors
    /// [`Error::Picture`] for the first picture that cannot be decoded.
    pub fn new(brief: &Brief, frames: u32) -> Result<Self, Error> {
        let size = brief.size;
        let first = brief.first.as_ref().map(|file| Still::load(file, Which::First, size)).transpose()?;
        let last = brief.last.as_ref().map(|file| Still::load(file, Which::Last, size)).transpose()?;
        let has_picture = first.is_some() || last.is_some();
        let clears = last.is_some();
        // Without anything to look at the prompt is the picture.
        let is_title = !has_picture && brief.references.is_empty();
        let caption = if is_title { None } else { Caption::new(&brief.prompt, Kind::Caption, size) };
        let room = if has_picture {
            Room::Strip
        } else {
            Room::Wall { below: caption.as_ref().map_or(0, |caption| caption.room_below(size.height)) }
        };
        Ok(Self {
            frames,
            seconds: f64::from(brief.seconds),
            shots: shots(first, last, brief),
            cards: Card::all(&brief.references, room, size)?,
            caption,
            clears,
            camera: Camera::default(),
            other: frame(size, Color::WHITE),
        })
    }

    /// Paints frame number `index`, from 0.
    pub fn paint(&mut self, index: u32, picture: &mut Picture) {
        let time = f64::from(index) / f64::from(self.frames.saturating_sub(1).max(1));
        let share = eased((time - DISSOLVE.0) / (DISSOLVE.1 - DISSOLVE.0));
        let Self { shots, camera, other, .. } = self;
        let mut look = |shot: &Shot, into: &mut Picture| {
            let framing = shot.from.towards(shot.to, shot.pace.at(time));
            camera.shoot(shot.still.picture(), shot.still.view(framing), into);
        };
        match &shots[..] {
            [first, ..] if share <= 0.0 => look(first, picture),
            [_, second] if share >= 1.0 => look(second, picture),
            [first, second] => {
                look(first, picture);
                look(second, other);
                mix(picture, other, (share * f64::from(WHOLE)).round() as u16);
            }
            shots => shots.iter().for_each(|shot| look(shot, picture)),
        }
        self.lay_over(time, picture);
    }

    /// Inserts and caption.
    fn lay_over(&self, time: f64, picture: &mut Picture) {
        let now = time * self.seconds;
        let lead = LEAD.min(self.seconds * LEAD_SHARE);
        // Seconds are left when it begins to go, and when it is gone.
        let remains = if self.clears { eased((self.seconds - now) / lead - 1.0) } else { 1.0 };
        let stagger = STAGGER.min(self.seconds * INSERTED / self.cards.len().max(1) as f64);
        for (index, card) in self.cards.iter().enumerate() {
            let since = now - lead - index as f64 * stagger;
            card.draw(picture, settling(since / SETTLE.min(2.0 * lead)), remains);
        }
        if let Some(caption) = &self.caption {
            let shown = eased((now - lead) / lead) * remains;
            caption.draw(picture, (shown * 255.0).round() as u8);
        }
    }
}

/// One shot, or two that dissolve into each other.
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
            let mut picture = backdrop::paint(&brief.prompt, size);
            if brief.references.is_empty()
                && let Some(title) = Caption::new(&brief.prompt, Kind::Title, size)
            {
                title.draw(&mut picture, u8::MAX);
            }
            let still = Still::new(picture, brief.size);
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
    fn frames_begin_with_the_first_picture_and_end_with_the_last_without_anything_over_them() {
        let size = Size::new(160, 90);
        let flat = |r, g, b| {
            let picture = frame(Size::new(320, 180), Color { r, g, b, a: 255 });
            let encoding = raster::Encoding { format: raster::OutputFormat::Png, quality: 100, flatten: Color::WHITE };
            bytes::Bytes::from(raster::encode(&picture, &encoding).expect("can be written"))
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
            let mut picture = frame(size, Color::WHITE);
            scene.paint(index, &mut picture);
            picture
        };
        assert_eq!(shown(0), frame(size, Color { r: 200, g: 20, b: 30, a: 255 }));
        assert_eq!(shown(47), frame(size, Color { r: 10, g: 40, b: 220, a: 255 }));
        let middle = shown(24);
        let [r, _, b, _] = middle.pixel(80, 40).expect("is within");
        assert!((60..150).contains(&r) && (80..180).contains(&b), "half of both: {r} {b}");
        assert!(middle.pixels() != shown(23).pixels(), "it moves");
    }
}

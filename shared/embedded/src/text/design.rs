//! Proposals for what a prompt asks about an image, colors and typefaces. The hash of the inputs selects them.

use super::form::plain;
use super::source::Source;
use crate::image::{contrasting, harmony, hex, hue_name};

/// An aspect of an image.
struct Aspect {
    /// Words of a label that asks for it.
    names: &'static [&'static str],
    /// Words by which a clause of the inputs is about it.
    known: &'static [&'static str],
    proposals: [&'static str; 4],
}

const ASPECTS: [Aspect; 6] = [
    Aspect {
        names: &["light", "lighting"],
        known: &[
            "light", "lit", "sun", "sunlight", "shadow", "shadows", "dusk", "dawn", "night", "morning", "evening",
            "glow",
        ],
        proposals: [
            "Soft light from a north window",
            "Low sun from the left, long shadows",
            "Even light of an overcast day",
            "One warm lamp in a dark room",
        ],
    },
    Aspect {
        names: &["camera", "lens", "framing", "angle"],
        known: &["camera", "lens", "mm", "eye-level", "close-up", "wide-angle", "angle", "overhead"],
        proposals: [
            "Eye level, 85 mm, straight from the front",
            "Slightly from above, 50 mm",
            "Low, 35 mm, the subject against the background",
            "Close, 100 mm macro, the edges cropped",
        ],
    },
    Aspect {
        names: &["focus"],
        known: &["focus", "sharp", "blurred", "depth"],
        proposals: [
            "The front edge and the label; the background is soft",
            "The whole subject; the surface behind it falls away",
            "The texture nearest to the camera",
            "Everything, from front to back",
        ],
    },
    Aspect {
        names: &["colour", "colours", "color", "colors", "palette"],
        known: &[
            "colour", "colours", "color", "colors", "palette", "red", "blue", "green", "yellow", "black", "white",
            "gold", "pink", "orange", "cream", "beige",
        ],
        proposals: [
            "Chalk, moss, ink blue, brass",
            "Clay, sand, smoke, a spot of vermilion",
            "Ice, slate, pine, a little copper",
            "Cream, rose, plum, leaf green",
        ],
    },
    Aspect {
        names: &["set", "setting", "background", "surface", "location", "place"],
        known: &[
            "stone", "wood", "wooden", "table", "marble", "slate", "linen", "wall", "window", "studio", "street",
            "kitchen", "beach", "forest", "garden", "room", "concrete",
        ],
        proposals: [
            "A plain table in front of an empty wall",
            "A stone ledge with open space around it",
            "A seamless paper background",
            "A wooden board, nothing else in the frame",
        ],
    },
    Aspect {
        names: &["mood", "feeling", "atmosphere", "tone"],
        known: &["calm", "mood", "quiet", "loud", "joyful", "warm", "cold", "bold", "playful", "serious", "premium"],
        proposals: ["Quiet and exact", "Warm and close", "Bold and bare", "Light and playful"],
    },
];

/// Typefaces under the SIL Open Font License: for headlines, for text, and the reason.
const TYPEFACES: [(&str, &str, &str); 4] = [
    ("Fraunces", "Inter", "a soft serif that carries the voice over a neutral sans that stays out of the way"),
    ("Space Grotesk", "Source Serif 4", "a technical sans for short lines over a serif that reads well at length"),
    ("Playfair Display", "Source Sans 3", "a serif with high contrast for a few large words over an open, plain sans"),
    ("Archivo", "Literata", "a sturdy sans that holds at any width over a warm serif made for screens"),
];

/// Levels of text, each with size in pixels, weight and line height.
const LEVELS: [(&str, &str, &str); 4] = [
    ("headline", "Headline", "48 px, weight 600, line height 1.1"),
    ("subhead", "Subhead", "28 px, weight 600, line height 1.25"),
    ("text", "Text", "17 px, weight 400, line height 1.5"),
    ("caption", "Caption", "13 px, weight 400, line height 1.4"),
];

/// Uses of a color, by a word of its role, and of colors without a role, in order.
const USES: [(&str, &str); 6] = [
    ("lead", "large areas and headlines"),
    ("support", "panels and secondary areas"),
    ("accent", "buttons and links"),
    ("background", "large areas"),
    ("text", "text and icons"),
    ("", "details"),
];

/// The answer to a label about an image: the clause of the source that is about it, otherwise a proposal. `None` if the label
/// is not about an image.
pub(super) fn aspect(label: &str, source: &Source, hash: u64) -> Option<String> {
    let asked: Vec<String> = label.split_whitespace().map(plain).collect();
    let (index, aspect) =
        ASPECTS.iter().enumerate().find(|(_, aspect)| asked.iter().any(|word| aspect.names.contains(&&**word)))?;
    let is_about = |clause: &&str| clause.split_whitespace().any(|word| aspect.known.contains(&&*plain(word)));
    let known = source.clauses().find(is_about).map(|clause| clause.trim_end_matches('.').to_owned());
    // Each aspect uses a different part of the hash.
    let proposed = aspect.proposals[(hash >> (8 * index)) as usize % aspect.proposals.len()];
    Some(known.unwrap_or_else(|| proposed.to_owned()))
}

/// A line for each color of a harmony: name, hex value, role and use, and the text color that is readable on it.
pub(super) fn colors(roles: &[String], brief: &str) -> Vec<String> {
    // The darkest and the lightest lead, the most saturated comes last.
    let harmony = harmony(brief);
    let order = [0, 4, 1, 3, 2];
    let line = |(at, role): (usize, &String)| {
        let color = harmony[order[at % order.len()]];
        let (_, usage) = USES.iter().find(|(word, _)| role.contains(word)).unwrap_or(&USES[USES.len() - 1]);
        let role = if role.is_empty() { String::new() } else { format!("{role}, ") };
        format!("{} {}: {role}{usage}; {} text", hue_name(color), hex(color), contrasting(color))
    };
    roles.iter().enumerate().map(line).collect()
}

/// The lines of a pair of typefaces, with the levels of text that the prompt names.
pub(super) fn typefaces(prompt: &str, hash: u64) -> Vec<String> {
    let (headlines, text, reason) = TYPEFACES[hash as usize % TYPEFACES.len()];
    let mut lines = vec![format!("For headlines: {headlines}"), format!("For text: {text}"), format!("Why: {reason}")];
    let asked: Vec<String> = prompt.split_whitespace().map(plain).collect();
    let named = LEVELS.iter().filter(|(name, ..)| asked.iter().any(|word| word == name));
    lines.extend(named.map(|(_, label, values)| format!("{label}: {values}")));
    lines
}

//! The bundled fonts and the selection among them.
//!
//! The fonts are part of the program: 19 MiB that are mapped and never copied. Only a program that
//! uses [`fonts`] or text contains them, because the linker drops unreferenced data. Tables are
//! parsed on first use, once per process, and shared by all threads. Licenses and sources:
//! `fonts/LICENSES.md`.

use std::str::FromStr;
use std::sync::LazyLock;

use harfrust::ShaperData;
use skrifa::{FontRef, MetadataProvider};
use unicode_properties::UnicodeEmoji;
use unicode_properties::emoji::{EmojiStatus, is_emoji_presentation_selector, is_text_presentation_selector};

use crate::geometry::ParseError;

/// A font family. It applies to Latin, Greek and Cyrillic; other scripts have one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Family {
    /// `sans`.
    #[default]
    Sans,
    /// `serif`.
    Serif,
    /// `mono`.
    Mono,
}

impl FromStr for Family {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "sans" => Ok(Self::Sans),
            "serif" => Ok(Self::Serif),
            "mono" => Ok(Self::Mono),
            _ => Err(ParseError),
        }
    }
}

/// Weight of letters. Symbols and emoji have one weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Weight {
    /// `regular` (400).
    #[default]
    Regular,
    /// `bold` (700).
    Bold,
}

impl FromStr for Weight {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "regular" => Ok(Self::Regular),
            "bold" => Ok(Self::Bold),
            _ => Err(ParseError),
        }
    }
}

/// A bundled font file, for another renderer (an SVG rasterizer's font database).
#[derive(Debug, Clone, Copy)]
pub struct Font {
    /// The family name in the file.
    pub name: &'static str,
    pub weight: Weight,
    /// The file: OpenType with `glyf` or `CFF` outlines.
    pub bytes: &'static [u8],
}

/// The purpose of a font.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Style(Family),
    Script,
    Symbols,
    Emoji,
}

macro_rules! bundled {
    ($($role:expr, $name:literal: $($weight:ident = $file:literal),+;)*) => {
        /// Every bundled font in order of priority for a character. Other families are last,
        /// because a renderer that draws a line with the first font that contains all of it would
        /// otherwise use their letters because of a single arrow.
        static BUNDLED: &[(Role, Font)] = &[$($(
            ($role, Font { name: $name, weight: Weight::$weight, bytes: include_bytes!(concat!("../../fonts/", $file)) }),
        )+)*];
    };
}

bundled! {
    Role::Style(Family::Sans), "Noto Sans": Regular = "NotoSans-Regular.ttf", Bold = "NotoSans-Bold.ttf";
    Role::Script, "Noto Sans Arabic": Regular = "NotoSansArabic-Regular.ttf", Bold = "NotoSansArabic-Bold.ttf";
    Role::Script, "Noto Sans Hebrew": Regular = "NotoSansHebrew-Regular.ttf", Bold = "NotoSansHebrew-Bold.ttf";
    Role::Script, "Noto Sans Armenian": Regular = "NotoSansArmenian-Regular.ttf", Bold = "NotoSansArmenian-Bold.ttf";
    Role::Script, "Noto Sans Georgian": Regular = "NotoSansGeorgian-Regular.ttf", Bold = "NotoSansGeorgian-Bold.ttf";
    Role::Script, "Noto Sans Ethiopic": Regular = "NotoSansEthiopic-Regular.ttf", Bold = "NotoSansEthiopic-Bold.ttf";
    Role::Script, "Noto Sans Devanagari": Regular = "NotoSansDevanagari-Regular.ttf", Bold = "NotoSansDevanagari-Bold.ttf";
    Role::Script, "Noto Sans Bengali": Regular = "NotoSansBengali-Regular.ttf", Bold = "NotoSansBengali-Bold.ttf";
    Role::Script, "Noto Sans Gurmukhi": Regular = "NotoSansGurmukhi-Regular.ttf", Bold = "NotoSansGurmukhi-Bold.ttf";
    Role::Script, "Noto Sans Gujarati": Regular = "NotoSansGujarati-Regular.ttf", Bold = "NotoSansGujarati-Bold.ttf";
    Role::Script, "Noto Sans Oriya": Regular = "NotoSansOriya-Regular.ttf", Bold = "NotoSansOriya-Bold.ttf";
    Role::Script, "Noto Sans Tamil": Regular = "NotoSansTamil-Regular.ttf", Bold = "NotoSansTamil-Bold.ttf";
    Role::Script, "Noto Sans Telugu": Regular = "NotoSansTelugu-Regular.ttf", Bold = "NotoSansTelugu-Bold.ttf";
    Role::Script, "Noto Sans Kannada": Regular = "NotoSansKannada-Regular.ttf", Bold = "NotoSansKannada-Bold.ttf";
    Role::Script, "Noto Sans Malayalam": Regular = "NotoSansMalayalam-Regular.ttf", Bold = "NotoSansMalayalam-Bold.ttf";
    Role::Script, "Noto Sans Sinhala": Regular = "NotoSansSinhala-Regular.ttf", Bold = "NotoSansSinhala-Bold.ttf";
    Role::Script, "Noto Sans Thai": Regular = "NotoSansThai-Regular.ttf", Bold = "NotoSansThai-Bold.ttf";
    Role::Script, "Noto Sans Lao": Regular = "NotoSansLao-Regular.ttf", Bold = "NotoSansLao-Bold.ttf";
    Role::Script, "Noto Sans Khmer": Regular = "NotoSansKhmer-Regular.ttf", Bold = "NotoSansKhmer-Bold.ttf";
    Role::Script, "Noto Sans Myanmar": Regular = "NotoSansMyanmar-Regular.ttf", Bold = "NotoSansMyanmar-Bold.ttf";
    Role::Script, "Noto Sans CJK SC": Regular = "NotoSansCJKsc-Regular.otf", Bold = "NotoSansCJKsc-Bold.otf";
    Role::Symbols, "Noto Sans Math": Regular = "NotoSansMath-Regular.ttf";
    Role::Symbols, "Noto Sans Symbols": Regular = "NotoSansSymbols-Regular.ttf";
    Role::Symbols, "Noto Sans Symbols2": Regular = "NotoSansSymbols2-Regular.ttf";
    Role::Emoji, "Twemoji Mozilla": Regular = "TwemojiMozilla.ttf";
    Role::Style(Family::Serif), "Noto Serif": Regular = "NotoSerif-Regular.ttf", Bold = "NotoSerif-Bold.ttf";
    Role::Style(Family::Mono), "Noto Sans Mono": Regular = "NotoSansMono-Regular.ttf", Bold = "NotoSansMono-Bold.ttf";
}

/// All bundled fonts.
pub fn fonts() -> impl ExactSizeIterator<Item = Font> {
    BUNDLED.iter().map(|(_, font)| *font)
}

/// A font ready for use.
pub(super) struct Face {
    role: Role,
    weight: Weight,
    /// Data that shaping derives from the tables.
    pub(super) shaping: ShaperData,
    /// The tables for outlines and character coverage.
    pub(super) tables: FontRef<'static>,
    /// Font units per em.
    pub(super) units_per_em: f64,
    /// The height of letters above the baseline, and their depth below it as a positive number, in
    /// em.
    pub(super) ascent: f64,
    pub(super) descent: f64,
}

impl Face {
    fn new(role: Role, font: &Font) -> Self {
        const WHOLE: &str = "the bundled fonts are whole: a test opens each";
        let tables = FontRef::new(font.bytes).expect(WHOLE);
        let metrics = tables.metrics(skrifa::instance::Size::unscaled(), skrifa::instance::LocationRef::default());
        let units_per_em = f64::from(metrics.units_per_em);
        Self {
            role,
            weight: font.weight,
            shaping: ShaperData::new(&tables),
            units_per_em,
            ascent: f64::from(metrics.ascent) / units_per_em,
            descent: -f64::from(metrics.descent) / units_per_em,
            tables,
        }
    }

    /// Returns `true` if it has a glyph for the character. Some fonts map control characters to an empty glyph, which does not
    /// count.
    fn has(&self, character: char) -> bool {
        !character.is_control() && self.tables.charmap().map(character).is_some()
    }
}

static FACES: LazyLock<Vec<Face>> =
    LazyLock::new(|| BUNDLED.iter().map(|(role, font)| Face::new(*role, font)).collect());

/// The faces of a style in order of priority.
pub(super) struct Cascade(Vec<&'static Face>);

impl Cascade {
    /// The requested family first, then sans, then fonts of further scripts in the same weight, symbols, emoji, the
    /// other families.
    pub(super) fn new(family: Family, weight: Weight) -> Self {
        let fits = |face: &&Face| face.weight == weight || matches!(face.role, Role::Symbols | Role::Emoji);
        let mut faces: Vec<&'static Face> = FACES.iter().filter(fits).collect();
        // The sort is stable, so the order of the table is otherwise kept.
        faces.sort_by_key(|face| match face.role {
            Role::Style(own) if own == family => 0,
            Role::Style(Family::Sans) => 1,
            Role::Script | Role::Symbols | Role::Emoji => 2,
            Role::Style(_) => 3,
        });
        Self(faces)
    }

    /// The face of the requested family.
    pub(super) fn primary(&self) -> &'static Face {
        self.0[0]
    }

    #[cfg(test)]
    pub(super) fn faces(&self) -> impl Iterator<Item = &'static Face> {
        self.0.iter().copied()
    }

    /// The face for a grapheme cluster: the first that contains all of it, otherwise the first that
    /// contains its base character, otherwise the primary one, which draws a box.
    ///
    /// For a cluster with emoji presentation, the emoji font is tried first (UTS 51, 4).
    pub(super) fn choose(&self, cluster: &str) -> &'static Face {
        let needed = || cluster.chars().filter(|character| !is_ignorable(*character));
        let has_all = |face: &&&'static Face| needed().all(|character| face.has(character));
        let emoji = || self.0.iter().filter(|face| face.role == Role::Emoji);
        if wants_emoji(cluster)
            && needed().next().is_some()
            && let Some(face) = emoji().find(has_all)
        {
            return face;
        }
        let has_base = |face: &&&'static Face| needed().next().is_none_or(|base| face.has(base));
        self.0.iter().find(has_all).or_else(|| self.0.iter().find(has_base)).copied().unwrap_or(self.primary())
    }
}

/// The name of the family with which a grapheme cluster of sans text is drawn; all its weights have the same
/// characters.
pub(crate) fn family_for(cluster: &str) -> &'static str {
    static SANS: LazyLock<Cascade> = LazyLock::new(|| Cascade::new(Family::Sans, Weight::Regular));
    let chosen = SANS.choose(cluster);
    let index = FACES.iter().position(|face| std::ptr::eq(face, chosen)).expect("a cascade is made of the faces");
    BUNDLED[index].1.name
}

/// Returns `true` if a cluster has emoji presentation: explicitly, or by default of its first character.
fn wants_emoji(cluster: &str) -> bool {
    if cluster.chars().any(is_text_presentation_selector) {
        return false;
    }
    let is_keycap = |character| character == '\u{20e3}';
    cluster.chars().any(|character| is_emoji_presentation_selector(character) || is_keycap(character))
        || cluster.chars().next().is_some_and(|base| {
            matches!(
                base.emoji_status(),
                EmojiStatus::EmojiPresentation
                    | EmojiStatus::EmojiPresentationAndModifierBase
                    | EmojiStatus::EmojiPresentationAndEmojiComponent
                    | EmojiStatus::EmojiPresentationAndModifierAndEmojiComponent
            )
        })
}

/// Returns `true` if a character has no visible glyph, so that no font needs to contain it (the characters
/// with the property `Default_Ignorable_Code_Point` that occur in text).
pub(super) fn is_ignorable(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}')
}

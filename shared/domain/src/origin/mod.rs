//! Where an image or video comes from (docs/reference/assets.md#origin).
//!
//! **Guarantee.** "This was made with AI" counts whoever says it, and nothing that the service does takes it back. Any other origin
//! counts only where the service itself knows it: metadata can be written by anybody.
//!
//! **Mechanism.** An origin is a term of the IPTC vocabulary for digital source types. [`of_output`] derives that of an output from the
//! work and the origins of the inputs. The term is stored with the asset and written into its file.

use DigitalSourceType as Term;

use crate::graph::named;
use crate::job::JobOperation;

named! {
    /// A term of the IPTC vocabulary [digital source type](https://cv.iptc.org/newscodes/digitalsourcetype/), which says how an image
    /// came to be.
    DigitalSourceType {
        /// Captured from real life by a digital camera.
        DigitalCapture = "digitalCapture",
        /// Merged from several frames captured from real life.
        ComputationalCapture = "computationalCapture",
        /// Digitized from a negative on film.
        NegativeFilm = "negativeFilm",
        /// Digitized from a positive on film.
        PositiveFilm = "positiveFilm",
        /// Digitized from a print.
        Print = "print",
        /// Retired by the IPTC: minor edits by people.
        MinorHumanEdits = "minorHumanEdits",
        /// Edited by people with tools that generate nothing.
        HumanEdits = "humanEdits",
        /// Altered by an algorithm.
        AlgorithmicallyEnhanced = "algorithmicallyEnhanced",
        /// Retired by the IPTC: made with software.
        SoftwareImage = "softwareImage",
        /// Retired by the IPTC: drawn by people with digital tools.
        DigitalArt = "digitalArt",
        /// Made by people with digital tools.
        DigitalCreation = "digitalCreation",
        /// Drawn from data.
        DataDrivenMedia = "dataDrivenMedia",
        /// Made by a trained model.
        TrainedAlgorithmicMedia = "trainedAlgorithmicMedia",
        /// Made by an algorithm without training data.
        AlgorithmicMedia = "algorithmicMedia",
        /// Captured from a screen.
        ScreenCapture = "screenCapture",
        /// Recorded from a virtual event.
        VirtualRecording = "virtualRecording",
        /// Composed of several elements.
        Composite = "composite",
        /// Composed of elements that were all captured from real life.
        CompositeCapture = "compositeCapture",
        /// Composed of elements of which at least one is synthetic.
        CompositeSynthetic = "compositeSynthetic",
        /// Composed of elements of which at least one was made by a trained model, or edited by one.
        CompositeWithTrainedAlgorithmicMedia = "compositeWithTrainedAlgorithmicMedia",
    }
}

named! {
    /// How the service knows the origin of an asset.
    OriginFrom {
        /// The service made the asset.
        Service = "service",
        /// The file says so. Anybody can write that.
        Metadata = "metadata",
    }
}

named! {
    /// Use of AI in an image.
    AiGenerated {
        /// A trained model made it.
        Yes = "yes",
        /// A trained model edited it, or made a part of it.
        Partly = "partly",
        /// It was made without a trained model.
        No = "no",
        /// Nothing reliable is known.
        Unknown = "unknown",
    }
}

#[expect(clippy::derivable_impls, reason = "`named!` takes no attributes but documentation")]
impl Default for AiGenerated {
    fn default() -> Self {
        Self::Unknown
    }
}

/// The origin of an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The term.
    pub term: DigitalSourceType,
    /// Who says so.
    pub from: OriginFrom,
}

/// The URI of the vocabulary, which precedes each term. Files contain it with `http`.
const SCHEME: &str = "http://cv.iptc.org/newscodes/digitalsourcetype/";

impl Term {
    /// The term's URI, as files contain it.
    pub fn uri(self) -> String {
        format!("{SCHEME}{self}")
    }

    /// Reads what a file says: the URI, with `http` or `https`, or the bare term. Case does not count. `None` if it is no term.
    pub fn from_file(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let scheme = SCHEME.trim_start_matches("http:");
        let uri = text.strip_prefix("http:").or_else(|| text.strip_prefix("https:"));
        let name = uri.map_or(Some(text.as_str()), |uri| uri.strip_prefix(scheme))?;
        Self::ALL.iter().copied().find(|term| term.as_str().eq_ignore_ascii_case(name))
    }

    /// Returns `true` if a trained model made the image or a part of it.
    pub fn is_ai(self) -> bool {
        matches!(self, Self::TrainedAlgorithmicMedia | Self::CompositeWithTrainedAlgorithmicMedia)
    }

    /// Returns `true` if the image was made, at least in part, rather than captured.
    fn is_synthetic(self) -> bool {
        matches!(
            self,
            Self::AlgorithmicMedia
                | Self::CompositeSynthetic
                | Self::DataDrivenMedia
                | Self::DigitalArt
                | Self::DigitalCreation
                | Self::SoftwareImage
                | Self::VirtualRecording
        )
    }

    /// Returns `true` if the whole image was captured from real life.
    fn is_capture(self) -> bool {
        matches!(
            self,
            Self::CompositeCapture
                | Self::ComputationalCapture
                | Self::DigitalCapture
                | Self::NegativeFilm
                | Self::PositiveFilm
                | Self::Print
        )
    }
}

impl Origin {
    /// The origin of an output of the service.
    pub fn service(term: Term) -> Self {
        Self { term, from: OriginFrom::Service }
    }

    /// The origin that a file claims by the values of its metadata. If there are several, one that says AI wins, then the first.
    pub fn from_file(values: &[impl AsRef<str>]) -> Option<Self> {
        let mut terms = values.iter().filter_map(|value| Term::from_file(value.as_ref()));
        let first = terms.next()?;
        let term = if first.is_ai() { first } else { terms.find(|term| term.is_ai()).unwrap_or(first) };
        Some(Self { term, from: OriginFrom::Metadata })
    }

    /// The term, if it is believed.
    pub fn believed(self) -> Option<Term> {
        (self.term.is_ai() || self.from == OriginFrom::Service).then_some(self.term)
    }
}

impl AiGenerated {
    /// The answer that an origin gives.
    pub fn from_origin(origin: Option<Origin>) -> Self {
        match origin.and_then(Origin::believed) {
            None => Self::Unknown,
            Some(Term::TrainedAlgorithmicMedia) => Self::Yes,
            Some(Term::CompositeWithTrainedAlgorithmicMedia) => Self::Partly,
            Some(_) => Self::No,
        }
    }

    /// Every origin that says this, with `None` for an asset without one.
    pub fn origins(self) -> impl Iterator<Item = Option<Origin>> {
        let known =
            Term::ALL.iter().flat_map(|&term| OriginFrom::ALL.iter().map(move |&from| Some(Origin { term, from })));
        known.chain([None]).filter(move |origin| Self::from_origin(*origin) == self)
    }
}

/// The effect of an Action on the origin of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Adjusts its only input, whose origin the result has.
    Adjusts,
    /// Draws on its only input.
    Annotates,
    /// Composes its inputs in one image.
    Composes,
}

/// Work that makes an image or a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// An Action with this effect.
    Action(Effect),
    /// A model makes something new. References guide it and are no part of the result.
    Generate,
    /// A model changes its inputs, or animates them.
    Edit,
    /// The embedded runtime draws, and shows its inputs in the result.
    Draw,
    /// The service draws several images side by side, as in a render.
    Render,
}

impl Work {
    /// The work of a model of a provider.
    pub fn of_model(operation: JobOperation) -> Self {
        match operation {
            JobOperation::Edit => Self::Edit,
            JobOperation::Generate | JobOperation::Variations | JobOperation::Action => Self::Generate,
        }
    }
}

/// The origin of an output of the service; `None` if it is not known. `inputs` are the origins of what the work reads, `None` for an
/// input without one.
pub fn of_output(work: Work, inputs: &[Option<Origin>]) -> Option<Term> {
    let believed: Vec<Option<Term>> = inputs.iter().map(|origin| origin.and_then(Origin::believed)).collect();
    let known = || believed.iter().flatten();
    let with_ai = known().any(|term| term.is_ai()).then_some(Term::CompositeWithTrainedAlgorithmicMedia);
    match work {
        Work::Generate => Some(Term::TrainedAlgorithmicMedia),
        Work::Edit => Some(Term::CompositeWithTrainedAlgorithmicMedia),
        Work::Draw if inputs.is_empty() => Some(Term::AlgorithmicMedia),
        Work::Draw => with_ai.or(Some(Term::CompositeSynthetic)),
        Work::Render => with_ai,
        Work::Action(Effect::Adjusts) => believed.first().copied().flatten(),
        Work::Action(Effect::Annotates) => match believed.first().copied().flatten() {
            Some(Term::TrainedAlgorithmicMedia) => Some(Term::CompositeWithTrainedAlgorithmicMedia),
            kept => kept,
        },
        Work::Action(Effect::Composes) => with_ai.or_else(|| {
            if known().any(|term| term.is_synthetic()) {
                return Some(Term::CompositeSynthetic);
            }
            let is_capture = |term: &Option<Term>| term.is_some_and(Term::is_capture);
            (!believed.is_empty() && believed.iter().all(is_capture)).then_some(Term::CompositeCapture)
        }),
    }
}

#[cfg(test)]
mod tests;

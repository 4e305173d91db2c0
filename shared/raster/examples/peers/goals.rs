//! What the figures are held to (issue "Actions: eight Image Actions", design/image-speed.md), and whether they are.

use std::fmt;

use crate::jobs::{CHANGE_RATIO, Job, Judged};
use crate::median;

/// Jobs that pass a picture through row by row, which shows in their memory.
const STREAMED: [&str; 3] = ["crop", "overlay", "grade"];

/// What came of a job, beside one peer.
pub struct Figures {
    pub job: &'static Job,
    /// Time of ours to the peer's, one job on one processor.
    pub one: f64,
    /// The same of two jobs at once on two.
    pub two: f64,
    /// Peak memory of ours to the peer's.
    pub memory: f64,
    /// Decibels to the reference of ours and of the peer's, where there is one.
    pub quality: Option<(f64, f64)>,
}

/// A goal and how far it is reached.
#[derive(Debug, PartialEq)]
struct Verdict {
    what: &'static str,
    /// The one that decides.
    figure: f64,
    /// Whose it is, unless it is of all.
    job: Option<&'static str>,
    wanted: Wanted,
    /// Jobs that fall short.
    short: Vec<&'static str>,
}

/// Where a figure must lie.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    AtMost(f64),
    AtLeast(f64),
}

impl Wanted {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtMost(most) => figure <= most,
            Self::AtLeast(least) => figure >= least,
        }
    }

    /// Whether one figure is farther from it than another.
    fn is_worse(self, figure: f64, other: f64) -> bool {
        match self {
            Self::AtMost(_) => figure > other,
            Self::AtLeast(_) => figure < other,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "<= {most}"),
            Self::AtLeast(least) => write!(f, ">= {least}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, figure, job, wanted, short } = self;
        let met = if wanted.is_met(*figure) { "ok" } else { "short" };
        write!(f, "{what:52} {figure:6.2}  {:8} {met:5}", wanted.to_string())?;
        match job {
            Some(job) if short.is_empty() => write!(f, "  at worst {job}"),
            _ if short.is_empty() => Ok(()),
            _ => write!(f, "  {}", short.join(", ")),
        }
    }
}

/// Prints a verdict on every goal; the figures are those beside sharp.
pub fn print(figures: &[Figures]) {
    println!("\nGoals, ours / sharp; the row that image-speed.md does not have is not counted in the first four");
    for verdict in verdicts(figures) {
        println!("{verdict}");
    }
}

fn verdicts(figures: &[Figures]) -> Vec<Verdict> {
    let counted = || figures.iter().filter(|figures| figures.job.name != CHANGE_RATIO);
    // Jobs a second, as against milliseconds a job.
    let rate = |figures: &Figures| Some(figures.two.recip());
    let streamed = |figures: &Figures| STREAMED.contains(&figures.job.name).then_some(figures.memory);
    let behind = |figures: &Figures| match (figures.job.judged, figures.quality) {
        (Judged::BesideSharp, Some((ours, theirs))) => Some(theirs - ours),
        _ => None,
    };
    let lossless = |figures: &Figures| match (figures.job.judged, figures.quality) {
        (Judged::ByItself, Some((ours, _))) => Some(ours),
        _ => None,
    };
    let times: Vec<f64> = counted().map(|figures| figures.one).collect();
    let middle = (!times.is_empty()).then(|| Verdict {
        what: "one processor, time, median",
        figure: median(times),
        job: None,
        wanted: Wanted::AtMost(0.65),
        short: Vec::new(),
    });
    let verdicts = [
        middle,
        every("one processor, time, every row", Wanted::AtMost(0.85), counted(), |figures| Some(figures.one)),
        every("two processors, jobs a second, every row", Wanted::AtLeast(1.1), counted(), rate),
        every("the same, stretch", Wanted::AtLeast(1.2), counted(), rate),
        every("peak memory of crop, overlay and grade", Wanted::AtMost(0.5), figures.iter(), streamed),
        every("JPEG, dB farther from the reference, every row", Wanted::AtMost(0.3), figures.iter(), behind),
        every("PNG to PNG, dB to exact Lanczos-3", Wanted::AtLeast(45.0), figures.iter(), lossless),
    ];
    verdicts.into_iter().flatten().collect()
}

/// The verdict on a figure of each job that has it; nothing when none has.
fn every<'a>(
    what: &'static str,
    wanted: Wanted,
    figures: impl Iterator<Item = &'a Figures>,
    of: impl Fn(&Figures) -> Option<f64>,
) -> Option<Verdict> {
    let each: Vec<(f64, &'static str)> = figures.filter_map(|figures| Some((of(figures)?, figures.job.name))).collect();
    let worst = each.iter().copied().reduce(|a, b| if wanted.is_worse(b.0, a.0) { b } else { a })?;
    let short = each.iter().filter(|(figure, _)| !wanted.is_met(*figure)).map(|(_, job)| *job).collect();
    Some(Verdict { what, figure: worst.0, job: Some(worst.1), wanted, short })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::JOBS;

    fn figures(name: &str) -> Figures {
        let job = JOBS.iter().find(|job| job.name == name).expect("is one");
        Figures { job, one: 0.5, two: 0.5, memory: 0.2, quality: Some((50.0, 50.1)) }
    }

    fn told(figures: &[Figures]) -> Vec<(&'static str, bool, Vec<&'static str>)> {
        let told = |verdict: Verdict| (verdict.what, verdict.wanted.is_met(verdict.figure), verdict.short);
        verdicts(figures).into_iter().map(told).collect()
    }

    #[test]
    fn each_goal_names_the_rows_that_fall_short() {
        let good: Vec<Figures> = ["crop", "resize-png", "grade"].map(figures).into();
        assert_eq!(told(&good).len(), 7);
        assert!(told(&good).iter().all(|(_, is_met, short)| *is_met && short.is_empty()));
        let slow = Figures { one: 0.9, two: 0.95, memory: 0.6, quality: Some((40.0, 40.4)), ..figures("crop") };
        let soft = Figures { quality: Some((44.9, 40.0)), ..figures("resize-png") };
        let short: Vec<Vec<&str>> = told(&[slow, soft]).into_iter().map(|(.., short)| short).collect();
        let crop = vec!["crop"];
        let expected = [vec![], crop.clone(), crop.clone(), crop.clone(), crop.clone(), crop, vec!["resize-png"]];
        assert_eq!(short, expected);
    }

    #[test]
    fn a_row_of_our_own_counts_for_quality_alone() {
        let slow = Figures { one: 9.0, two: 9.0, quality: Some((30.0, 40.0)), ..figures(CHANGE_RATIO) };
        let short: Vec<_> = told(&[slow, figures("resize")]).into_iter().filter(|(_, is_met, _)| !is_met).collect();
        assert_eq!(short.len(), 1, "{short:?}");
        assert_eq!(short[0].2, [CHANGE_RATIO]);
    }
}

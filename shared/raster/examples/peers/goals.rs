//! The goals of the image benchmark, and whether the measurements reach them
//! (`docs/benchmarks.md#image-actions`).

use std::fmt;

use crate::jobs::{CHANGE_RATIO, Job, Judged};
use crate::median;

/// Jobs that process an image row by row, which reduces their memory.
const STREAMED: [&str; 3] = ["crop", "overlay", "grade"];

/// The results of a job, relative to one peer.
pub struct Figures {
    pub job: &'static Job,
    /// Our time divided by the peer's, for one job on one processor.
    pub one: f64,
    /// Our time divided by the peer's, for two jobs at once on two processors.
    pub two: f64,
    /// Our peak memory divided by the peer's.
    pub memory: f64,
    /// The distance to the reference in decibels, ours and the peer's, if there is a reference.
    pub quality: Option<(f64, f64)>,
}

/// A goal and whether it is reached.
#[derive(Debug, PartialEq)]
struct GoalResult {
    what: &'static str,
    /// The measurement that decides.
    figure: f64,
    /// The job of the measurement, unless it covers all jobs.
    job: Option<&'static str>,
    wanted: Wanted,
    /// Jobs that miss the goal.
    short: Vec<&'static str>,
}

/// The range in which a figure must be.
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

    /// Returns `true` if one figure is further outside than another.
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

impl fmt::Display for GoalResult {
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

/// Prints a verdict on every goal, with the figures relative to sharp.
pub fn print(figures: &[Figures]) {
    println!("\nGoals, ours / sharp; the last row is not counted in the first four");
    for result in goal_results(figures) {
        println!("{result}");
    }
}

fn goal_results(figures: &[Figures]) -> Vec<GoalResult> {
    let counted = || figures.iter().filter(|figures| figures.job.name != CHANGE_RATIO);
    // Jobs per second, the inverse of milliseconds per job.
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
    let middle = (!times.is_empty()).then(|| GoalResult {
        what: "one processor, time, median",
        figure: median(times),
        job: None,
        wanted: Wanted::AtMost(0.65),
        short: Vec::new(),
    });
    let goal_results = [
        middle,
        every("one processor, time, every row", Wanted::AtMost(0.85), counted(), |figures| Some(figures.one)),
        every("two processors, jobs a second, every row", Wanted::AtLeast(1.1), counted(), rate),
        every("the same, stretch", Wanted::AtLeast(1.2), counted(), rate),
        every("peak memory of crop, overlay and grade", Wanted::AtMost(0.5), figures.iter(), streamed),
        every("JPEG, dB farther from the reference, every row", Wanted::AtMost(0.3), figures.iter(), behind),
        every("PNG to PNG, dB to exact Lanczos-3", Wanted::AtLeast(45.0), figures.iter(), lossless),
    ];
    goal_results.into_iter().flatten().collect()
}

/// The verdict on a measurement of each job that has it; `None` if no job has it.
fn every<'a>(
    what: &'static str,
    wanted: Wanted,
    figures: impl Iterator<Item = &'a Figures>,
    of: impl Fn(&Figures) -> Option<f64>,
) -> Option<GoalResult> {
    let each: Vec<(f64, &'static str)> = figures.filter_map(|figures| Some((of(figures)?, figures.job.name))).collect();
    let worst = each.iter().copied().reduce(|a, b| if wanted.is_worse(b.0, a.0) { b } else { a })?;
    let short = each.iter().filter(|(figure, _)| !wanted.is_met(*figure)).map(|(_, job)| *job).collect();
    Some(GoalResult { what, figure: worst.0, job: Some(worst.1), wanted, short })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::JOBS;

    fn figures(name: &str) -> Figures {
        let job = JOBS.iter().find(|job| job.name == name).expect("is one");
        Figures { job, one: 0.5, two: 0.5, memory: 0.2, quality: Some((50.0, 50.1)) }
    }

    fn reported(figures: &[Figures]) -> Vec<(&'static str, bool, Vec<&'static str>)> {
        let reported = |result: GoalResult| (result.what, result.wanted.is_met(result.figure), result.short);
        goal_results(figures).into_iter().map(reported).collect()
    }

    #[test]
    fn each_goal_names_the_rows_that_fall_short() {
        let good: Vec<Figures> = ["crop", "resize-png", "grade"].map(figures).into();
        assert_eq!(reported(&good).len(), 7);
        assert!(reported(&good).iter().all(|(_, is_met, short)| *is_met && short.is_empty()));
        let slow = Figures { one: 0.9, two: 0.95, memory: 0.6, quality: Some((40.0, 40.4)), ..figures("crop") };
        let soft = Figures { quality: Some((44.9, 40.0)), ..figures("resize-png") };
        let short: Vec<Vec<&str>> = reported(&[slow, soft]).into_iter().map(|(.., short)| short).collect();
        let crop = vec!["crop"];
        let expected = [vec![], crop.clone(), crop.clone(), crop.clone(), crop.clone(), crop, vec!["resize-png"]];
        assert_eq!(short, expected);
    }

    #[test]
    fn a_row_of_our_own_counts_for_quality_alone() {
        let slow = Figures { one: 9.0, two: 9.0, quality: Some((30.0, 40.0)), ..figures(CHANGE_RATIO) };
        let short: Vec<_> = reported(&[slow, figures("resize")]).into_iter().filter(|(_, is_met, _)| !is_met).collect();
        assert_eq!(short.len(), 1, "{short:?}");
        assert_eq!(short[0].2, [CHANGE_RATIO]);
    }
}

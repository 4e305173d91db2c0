//! The table of results.

use std::fmt;

pub use e2e::figures::{median, quantile};

/// One figure with its peer and its goal.
#[derive(Debug)]
pub struct BenchRow {
    /// The name of the measurement.
    pub what: String,
    /// The service's value.
    pub ours: String,
    /// The value of the baseline or of the other size. Empty if there is none.
    pub peer: String,
    /// The figure that is judged.
    pub figure: String,
    /// The goal. Empty if the figure is only reported.
    pub goal: String,
    /// `true` if the goal is met. `None` if the figure is only reported.
    pub met: Option<bool>,
    /// A remark about the measurement.
    pub note: Option<String>,
}

impl BenchRow {
    /// A row without a goal.
    pub fn reported(what: impl Into<String>, figure: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            ours: String::new(),
            peer: String::new(),
            figure: figure.into(),
            goal: String::new(),
            met: None,
            note: None,
        }
    }

    /// Adds the service's value.
    pub fn ours(self, ours: impl Into<String>) -> Self {
        Self { ours: ours.into(), ..self }
    }

    /// Adds the peer's value.
    pub fn peer(self, peer: impl Into<String>) -> Self {
        Self { peer: peer.into(), ..self }
    }

    /// Adds the goal and whether it is met.
    pub fn goal(self, goal: impl Into<String>, met: bool) -> Self {
        Self { goal: goal.into(), met: Some(met), ..self }
    }

    /// Adds a note, which is printed below the table.
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// A row for rates of the service and its baseline in alternating turns, judged by the median of the turns' ratios.
    pub fn ratio(what: &str, unit: &str, turns: &[(f64, f64)], goal: f64) -> Self {
        let ratios: Vec<f64> = turns.iter().map(|(ours, baseline)| ours / baseline).collect();
        let ratio = median(&ratios);
        let of = |side: fn(&(f64, f64)) -> f64| median(&turns.iter().map(side).collect::<Vec<_>>());
        let spread = |ratios: &[f64]| {
            let (low, high) = ratios.iter().fold((f64::MAX, 0.0_f64), |(low, high), r| (low.min(*r), high.max(*r)));
            format!("turns {low:.2} to {high:.2}")
        };
        Self::reported(what, format!("{ratio:.2} ({})", spread(&ratios)))
            .ours(format!("{:.0} {unit}", of(|turn| turn.0)))
            .peer(format!("{:.0} {unit}", of(|turn| turn.1)))
            .goal(format!(">= {goal}"), ratio >= goal)
    }
}

/// All rows, in the order of measurement.
#[derive(Debug, Default)]
pub struct Table(Vec<BenchRow>);

impl Table {
    /// Appends rows.
    pub fn add(&mut self, rows: Vec<BenchRow>) {
        self.0.extend(rows);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["what", "service", "baseline", "figure", "goal", ""].map(str::to_owned);
        let mut notes = Vec::new();
        let mut lines = vec![heads];
        for row in &self.0 {
            let mut what = row.what.clone();
            if let Some(note) = &row.note {
                notes.push(note);
                what += &format!(" [{}]", notes.len());
            }
            let verdict = match row.met {
                Some(true) => "ok",
                Some(false) => "not met",
                None => "",
            };
            let cells = [&row.ours, &row.peer, &row.figure, &row.goal];
            let [ours, peer, figure, goal] = cells.map(Clone::clone);
            lines.push([what, ours, peer, figure, goal, verdict.to_owned()]);
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..6).map(width).collect();
        for (index, line) in lines.iter().enumerate() {
            let cells: Vec<String> =
                line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<0$}", *width)).collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
            if index == 0 {
                writeln!(f, "{}", widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("  "))?;
            }
        }
        for (index, note) in notes.iter().enumerate() {
            writeln!(f, "[{}] {note}", index + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_median_of_its_turns() {
        let row = BenchRow::ratio("x", "/s", &[(60.0, 100.0), (10.0, 100.0), (90.0, 100.0)], 0.6);
        assert_eq!((row.figure.as_str(), row.met), ("0.60 (turns 0.10 to 0.90)", Some(true)));
        assert_eq!(BenchRow::ratio("x", "/s", &[(59.0, 100.0)], 0.6).met, Some(false));
    }

    #[test]
    fn columns_are_aligned_and_notes_numbered() {
        let mut table = Table::default();
        table.add(vec![
            BenchRow::reported("first", "1").note("how"),
            BenchRow::reported("second", "2").ours("long text").goal(">= 3", false),
        ]);
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "first [1]                       1");
        assert_eq!(lines[3], "second     long text            2       >= 3  not met");
        assert_eq!(lines[4], "[1] how");
    }
}

//! The output of commands.
//!
//! Standard output is the result: for people, or with `--json` exactly what the service answered. Everything else goes to standard
//! error. Text of the service has passed through [`plain`], because a title can hold anything, also what a terminal obeys.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use client::Answer;
use domain::{Timestamp, counted};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::de::DeserializeOwned;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::failure::{Failure, Outcome};

/// How results are printed.
pub struct Output {
    /// As JSON.
    pub json: bool,
    /// Handles alone, without progress and remarks.
    pub quiet: bool,
    bars: MultiProgress,
}

impl Output {
    pub fn new(json: bool, quiet: bool) -> Self {
        let bars = MultiProgress::new();
        if quiet || !io::stderr().is_terminal() {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self { json, quiet, bars }
    }

    /// Prints an answer: as it is, or as `people` renders its value. A value that this release cannot read is shown as JSON, too.
    pub fn answer<T: DeserializeOwned>(&self, answer: &Answer<T>, people: impl FnOnce(T) -> String) {
        self.body(answer, || match answer.value() {
            Ok(value) => people(value),
            Err(_) => plain(&answer.text()),
        });
    }

    /// Prints an answer of what a command makes or lists: as it is, with `--quiet` as its handles, one a line, or as `people` renders
    /// its value.
    pub fn made<T: DeserializeOwned>(
        &self,
        answer: &Answer<T>,
        handles: impl FnOnce(&T) -> Vec<String>,
        people: impl FnOnce(T) -> String,
    ) {
        self.answer(answer, |value| if self.quiet { joined(handles(&value), "\n") } else { people(value) });
    }

    /// Prints an answer: as it is, or as `people` renders it.
    pub fn body<T>(&self, answer: &Answer<T>, people: impl FnOnce() -> String) {
        match self.json {
            true => self.line(answer.text().trim_end()),
            false => self.line(people()),
        }
    }

    /// Prints a value: as JSON, or as `people` renders it.
    pub fn value(&self, value: &Value, people: impl FnOnce() -> String) {
        match self.json {
            true => self.line(value),
            false => self.line(people()),
        }
    }

    /// Prints the path of a file that was written, or `said` as JSON. A file has no handle, so `--quiet` prints nothing.
    pub fn wrote(&self, path: &Path, said: &Value) {
        if self.json || !self.quiet {
            self.value(said, || path.display().to_string());
        }
    }

    /// Prints a line of the result; nothing if it is empty.
    pub fn line(&self, text: impl Display) {
        let text = text.to_string();
        if !text.is_empty() {
            self.bars.suspend(|| put(format!("{text}\n").as_bytes()));
        }
    }

    /// Says something beside the result.
    pub fn remark(&self, text: impl Display) {
        if !self.quiet && !self.json {
            self.error_line(text);
        }
    }

    /// Prints a line to standard error: of the result, if standard output is a file that the command writes.
    pub fn error_line(&self, text: impl Display) {
        // A line that cannot be written is not worth a failure.
        self.bars.suspend(|| _ = writeln!(io::stderr(), "{text}"));
    }

    /// A bar for `length` bytes.
    pub fn byte_bar(&self, name: &str, length: u64) -> ProgressBar {
        self.bar(name, length, "{prefix:24!} {bar:30} {decimal_bytes:>9} of {decimal_total_bytes:9} {msg}")
    }

    /// A bar for the bytes of all files of a command, with the rate and the time that is left.
    pub fn total_bar(&self, length: u64) -> ProgressBar {
        let template =
            "{prefix:24!} {bar:30} {decimal_bytes:>9} of {decimal_total_bytes:9} {decimal_bytes_per_sec} {eta} left";
        self.bar("all files", length, template)
    }

    /// A bar for the outputs of work, in percent.
    pub fn work_bar(&self, name: &str) -> ProgressBar {
        let bar = self.bar(name, 100, "{prefix:24!} {bar:30} {percent:>3} % {elapsed:>4} {msg}");
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        bar
    }

    fn bar(&self, name: &str, length: u64, template: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(length).with_style(style.progress_chars("━╸ ")).with_prefix(plain(name));
        self.bars.add(bar)
    }
}

/// `true` if standard output takes nothing more: its reader is gone, or it cannot be written.
static IS_UNREAD: AtomicBool = AtomicBool::new(false);
/// The reason that it cannot be written.
static UNWRITTEN: OnceLock<String> = OnceLock::new();

/// Writes to standard output.
///
/// When the reader is gone, as in `canvas list | head`, this and all later output is dropped. The command finishes its work and
/// exits with its own status. The same holds when standard output cannot be written, as on a full disk, and then [`written`] is
/// the failure of a command that has no other.
pub fn put(bytes: &[u8]) {
    if is_unread() {
        return;
    }
    let mut stdout = io::stdout().lock();
    note(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// Records the result of a write to standard output.
pub fn note(result: io::Result<()>) {
    let Err(error) = result else { return };
    IS_UNREAD.store(true, Ordering::Relaxed);
    if error.kind() != io::ErrorKind::BrokenPipe {
        UNWRITTEN.get_or_init(|| format!("standard output: {error}"));
    }
}

/// Fails if standard output could not be written. Output whose reader is gone does not count.
pub fn written() -> Outcome {
    UNWRITTEN.get().map_or(Ok(()), |message| Err(Failure::Unwritten(message.clone())))
}

/// Returns `true` if standard output takes nothing more, so that a command that only prints can stop.
pub fn is_unread() -> bool {
    IS_UNREAD.load(Ordering::Relaxed)
}

/// A text without control characters and those that reorder text, which could make a terminal show or do something else.
pub fn plain(text: &str) -> String {
    let is_safe = |c: &char| {
        !c.is_control() && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { c }).filter(is_safe).collect()
}

/// A text of many lines, each of them [`plain`].
pub fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

/// A member of an answer as plain text.
pub fn text(value: impl Display) -> String {
    plain(&value.to_string())
}

/// An optional member of an answer as plain text; empty when it is absent.
pub fn optional(value: Option<impl Display>) -> String {
    value.map(text).unwrap_or_default()
}

/// Members of an answer as plain text, with `separator` between them.
pub fn joined(values: impl IntoIterator<Item = impl Display>, separator: &str) -> String {
    values.into_iter().map(text).collect::<Vec<_>>().join(separator)
}

/// The columns of the terminal that standard output is.
fn terminal_columns() -> Option<usize> {
    console::Term::stdout().size_checked().map(|(_, columns)| columns.into()).filter(|_| io::stdout().is_terminal())
}

/// Narrowest column of a title that is cut.
const CUT_MIN: usize = 12;

/// Rows in columns. The first row is the head. On a terminal, the first column is cut so that lines fit.
pub fn table(rows: &[Vec<String>]) -> String {
    table_within(rows, terminal_columns())
}

fn table_within(rows: &[Vec<String>], available: Option<usize>) -> String {
    if rows.len() < 2 {
        return String::new();
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
    let mut widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    if let (Some(available), Some((first, rest))) = (available, widths.split_first_mut()) {
        let rest: usize = rest.iter().map(|width| width + 2).sum();
        *first = (*first).min(available.saturating_sub(rest).max(CUT_MIN));
    }
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let cell = console::truncate_str(cell, *width, "…");
            format!("{cell}{}", " ".repeat(width - cell.width()))
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A table of items: a head, and how each item becomes a row.
pub fn rows<T>(head: &[&str], items: impl IntoIterator<Item = T>, row: impl Fn(T) -> Vec<String>) -> String {
    let head = head.iter().map(|name| (*name).to_owned()).collect();
    table(&std::iter::once(head).chain(items.into_iter().map(row)).collect::<Vec<_>>())
}

/// A price.
pub fn credits(value: impl Display) -> String {
    counted(value, "credit")
}

/// A time without its fraction of a second.
pub fn time(value: Timestamp) -> String {
    value.get().format("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_cannot_control_a_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\u{7}\u{9b}c\u{202e}d\ne"), "a[31mbcd e");
        assert_eq!(plain_lines("a\u{1b}\nb\u{7}"), "a\nb");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let table = |rows: &[_]| table_within(rows, None);
        assert_eq!(table(&[row(["a", "b"]), row(["猫", "x"])]), "a   b\n猫  x");
        assert_eq!(table(&[row(["a", "b"])]), "", "nothing but a head");
    }

    #[test]
    fn titles_are_cut_to_the_terminal_and_handles_are_not() {
        let rows =
            [["title", "handle"], ["a very long title", "canvas:me:0123"]].map(|row| row.map(str::to_owned).to_vec());
        let lines = |width| table_within(&rows, Some(width)).lines().nth(1).map(str::to_owned);
        assert_eq!(lines(33).as_deref(), Some("a very long title  canvas:me:0123"));
        assert_eq!(lines(32).as_deref(), Some("a very long tit…  canvas:me:0123"));
        assert_eq!(lines(5).as_deref(), Some("a very long…  canvas:me:0123"), "never narrower than twelve columns");
    }
}

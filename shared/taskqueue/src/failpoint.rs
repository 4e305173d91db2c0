//! Failpoints: named places at which a test makes a process fail
//! (docs/reliability.md#r4-fault-matrix).
//!
//! `CANVAS_FAILPOINTS="name=action;…"` arms them once, at the start of a process. Each action can
//! be followed by `*N`, which limits it to the first N times. The actions are:
//!
//! - `hold`: stop here forever, so that a test can end the process, or a service that it calls, at
//!   this point;
//! - `hold:<file>`: stop here while the file exists; the process appends its id to the file, so
//!   that a test can see that this point was reached;
//! - `kill`: send SIGKILL to this process;
//! - `overflow`: overflow the stack of this thread, which ends the process and cannot be caught;
//! - `error`: fail here, if the failpoint supports it;
//! - `sleep:<milliseconds>`: sleep.
//!
//! The failpoint `task.run.<id>` is reached by a run of the task with this id.
//!
//! Without the variable, a failpoint costs one read of a static boolean.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The interval at which a held failpoint checks whether its file still exists.
const HOLD_INTERVAL: Duration = Duration::from_millis(10);

static ARMED: OnceLock<Failpoints> = OnceLock::new();

/// Marks a failpoint in async code: `failpoint!("task.claimed")`. With a second argument, `failpoint!("name", return Err(…))`,
/// the action `error` evaluates that expression.
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {
        if $crate::failpoint::armed() {
            $crate::failpoint::reach($name).await;
        }
    };
    ($name:literal, $on_error:expr) => {
        if $crate::failpoint::armed() && $crate::failpoint::reach($name).await {
            $on_error
        }
    };
}

/// The list of failpoints is malformed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "CANVAS_FAILPOINTS: {0:?} is none of hold, hold:<file>, kill, overflow, error, sleep:<milliseconds>, each with an optional *<count>"
)]
pub struct InvalidFailpoint(String);

/// Parses a list of failpoints and arms none.
pub fn check(list: &str) -> Result<(), InvalidFailpoint> {
    Failpoints::parse(list).map(drop)
}

/// Arms the failpoints of a list; an empty list arms none. Only the first call in a process has an effect.
pub fn arm(list: &str) -> Result<(), InvalidFailpoint> {
    let failpoints = Failpoints::parse(list)?;
    if !failpoints.0.is_empty() {
        tracing::warn!(list, "failpoints are armed: this process will fail on purpose");
        ARMED.get_or_init(|| failpoints);
    }
    Ok(())
}

/// Returns `true` if any failpoint is armed.
pub fn armed() -> bool {
    ARMED.get().is_some()
}

/// Executes the action of the failpoint of this name. Returns whether the action is `error`.
pub async fn reach(name: &str) -> bool {
    match ARMED.get().and_then(|failpoints| failpoints.next(name)) {
        Some(action) => {
            tracing::warn!(failpoint = name, ?action, "failpoint {name} reached");
            action.perform().await
        }
        None => false,
    }
}

#[derive(Debug)]
struct Failpoints(HashMap<String, Failpoint>);

#[derive(Debug)]
struct Failpoint {
    action: Action,
    left: AtomicU64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Hold(Option<PathBuf>),
    Kill,
    Overflow,
    Error,
    Sleep(Duration),
}

impl Failpoints {
    fn parse(list: &str) -> Result<Self, InvalidFailpoint> {
        let entries = list.split(';').map(str::trim).filter(|entry| !entry.is_empty());
        entries
            .map(|entry| {
                let invalid = || InvalidFailpoint(entry.to_owned());
                let (name, action) = entry.split_once('=').ok_or_else(invalid)?;
                let (action, times) = match action.split_once('*') {
                    Some((action, times)) => (action, times.parse().map_err(|_| invalid())?),
                    None => (action, u64::MAX),
                };
                let action = match action.split_once(':') {
                    None if action == "hold" => Action::Hold(None),
                    None if action == "kill" => Action::Kill,
                    None if action == "overflow" => Action::Overflow,
                    None if action == "error" => Action::Error,
                    Some(("hold", file)) if !file.is_empty() => Action::Hold(Some(PathBuf::from(file))),
                    Some(("sleep", millis)) => {
                        Action::Sleep(Duration::from_millis(millis.parse().map_err(|_| invalid())?))
                    }
                    _ => return Err(invalid()),
                };
                Ok((name.trim().to_owned(), Failpoint { action, left: AtomicU64::new(times) }))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The action of `name` for the current call.
    fn next(&self, name: &str) -> Option<Action> {
        let failpoint = self.0.get(name)?;
        let counted = failpoint.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        counted.ok().map(|_| failpoint.action.clone())
    }
}

impl Action {
    async fn perform(&self) -> bool {
        match self {
            Action::Hold(None) => std::future::pending().await,
            Action::Hold(Some(file)) => hold(file).await,
            Action::Kill => {
                // This uses the `kill` command, because sending a signal would need a foreign
                // function call.
                let _ = std::process::Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status();
                std::process::abort();
            }
            Action::Overflow => {
                descend(usize::MAX);
            }
            Action::Error => return true,
            Action::Sleep(duration) => tokio::time::sleep(*duration).await,
        }
        false
    }
}

/// Uses a frame of the stack for each of `levels`.
fn descend(levels: usize) -> usize {
    let frame = std::hint::black_box([levels; 512]);
    if levels == 0 { 0 } else { descend(levels - 1) + std::hint::black_box(&frame)[0] }
}

async fn hold(path: &Path) {
    // The file is not created: a missing file means "pass".
    let Ok(mut mark) = std::fs::OpenOptions::new().append(true).open(path) else { return };
    let _ = writeln!(mark, "{}", std::process::id());
    // A file that was removed and created again between two checks is a different file. Its inode number is not reused while
    // this one is open.
    while is_at(&mark, path) {
        tokio::time::sleep(HOLD_INTERVAL).await;
    }
}

/// Returns `true` if the path still refers to this file.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(held), Ok(named)) => (held.dev(), held.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_of_a_list_is_armed_under_its_name() {
        let failpoints =
            Failpoints::parse(" a=hold; b=hold:/tmp/x ;c=kill*2;d=error;e=sleep:50*1;f=overflow").expect("parses");
        assert_eq!(failpoints.next("a"), Some(Action::Hold(None)));
        assert_eq!(failpoints.next("b"), Some(Action::Hold(Some(PathBuf::from("/tmp/x")))));
        assert_eq!(failpoints.next("c"), Some(Action::Kill));
        assert_eq!(failpoints.next("d"), Some(Action::Error));
        assert_eq!(failpoints.next("e"), Some(Action::Sleep(Duration::from_millis(50))));
        assert_eq!(failpoints.next("f"), Some(Action::Overflow));
        assert_eq!(failpoints.next("unknown"), None);
    }

    #[test]
    fn a_count_runs_out() {
        let failpoints = Failpoints::parse("c=kill*2;e=sleep:50*0").expect("parses");
        assert_eq!(failpoints.next("c"), Some(Action::Kill));
        assert_eq!(failpoints.next("c"), Some(Action::Kill));
        assert_eq!(failpoints.next("c"), None);
        assert_eq!(failpoints.next("e"), None);
    }

    #[test]
    fn an_empty_list_arms_nothing_and_a_wrong_one_is_refused() {
        assert!(Failpoints::parse("").expect("parses").0.is_empty());
        for wrong in ["a", "a=", "a=stop", "a=hold:", "a=sleep", "a=sleep:soon", "a=error*many"] {
            assert_eq!(Failpoints::parse(wrong).expect_err("is refused"), InvalidFailpoint(wrong.to_owned()));
        }
    }

    #[tokio::test]
    async fn a_hold_ends_with_its_file_and_leaves_the_process_id_in_it() {
        let (file, held) = held().await;
        assert_eq!(std::fs::read_to_string(&file).expect("reads").trim(), std::process::id().to_string());
        assert!(!held.is_finished());
        std::fs::remove_file(&file).expect("removes");
        assert!(!held.await.expect("ends"));
    }

    #[tokio::test]
    async fn a_hold_ends_with_its_file_even_if_there_is_another_at_once() {
        let (file, held) = held().await;
        std::fs::remove_file(&file).expect("removes");
        std::fs::write(&file, "").expect("writes");
        assert!(!held.await.expect("ends"));
        assert_eq!(std::fs::read_to_string(&file).expect("reads"), "");
        std::fs::remove_file(&file).expect("removes");
    }

    /// A held task, and the file that holds it.
    async fn held() -> (PathBuf, tokio::task::JoinHandle<bool>) {
        let file = std::env::temp_dir().join(format!("canvas-failpoint-{}", uuid::Uuid::new_v4()));
        std::fs::write(&file, "").expect("writes");
        let action = Action::Hold(Some(file.clone()));
        let held = tokio::spawn(async move { action.perform().await });
        while std::fs::read_to_string(&file).expect("reads").is_empty() {
            tokio::task::yield_now().await;
        }
        (file, held)
    }
}

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::*;

/// A grace period longer than any test: a test that ends did not wait for it.
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn tasks_that_end_when_stopped_give_success() {
    let lifecycle = Lifecycle::new();
    let (stopping, aborted) = (lifecycle.stopping(), lifecycle.aborted());
    lifecycle.spawn("work", async move { stopping.cancelled().await });
    let stopping = lifecycle.stopping();
    lifecycle.spawn("fallible work", async move {
        stopping.cancelled().await;
        Ok::<(), std::io::Error>(())
    });
    lifecycle.stop();
    assert_eq!(lifecycle.run(LONG).await, ExitCode::SUCCESS);
    assert!(aborted.is_cancelled());
}

#[tokio::test]
async fn a_task_that_ends_before_stopping_began_stops_the_process_with_a_failure() {
    let lifecycle = Lifecycle::new();
    let stopping = lifecycle.stopping();
    lifecycle.spawn("other", async move { stopping.cancelled().await });
    lifecycle.spawn("work", async {});
    assert_eq!(lifecycle.run(LONG).await, ExitCode::FAILURE);
}

#[tokio::test]
async fn a_task_that_fails_stops_the_process_with_a_failure() {
    let lifecycle = Lifecycle::new();
    lifecycle.spawn("work", async { Err("no database") });
    assert_eq!(lifecycle.run(LONG).await, ExitCode::FAILURE);
}

#[tokio::test]
async fn a_task_that_panics_stops_the_process_with_a_failure() {
    let lifecycle = Lifecycle::new();
    let defect = true;
    lifecycle.spawn("work", async move { assert!(!defect, "a defect") });
    assert_eq!(lifecycle.run(LONG).await, ExitCode::FAILURE);
}

#[tokio::test]
async fn a_task_that_fails_while_stopping_is_a_failure_too() {
    let lifecycle = Lifecycle::new();
    let stopping = lifecycle.stopping();
    lifecycle.spawn("work", async move {
        stopping.cancelled().await;
        Err("could not finish")
    });
    lifecycle.stop();
    assert_eq!(lifecycle.run(LONG).await, ExitCode::FAILURE);
}

#[tokio::test]
async fn a_support_task_that_fails_stops_the_process_with_a_failure() {
    let lifecycle = Lifecycle::new();
    let stopping = lifecycle.stopping();
    lifecycle.spawn("work", async move { stopping.cancelled().await });
    lifecycle.spawn_support("admin", async { Err("address in use") });
    assert_eq!(lifecycle.run(LONG).await, ExitCode::FAILURE);
}

#[tokio::test]
async fn support_outlives_the_tasks_and_does_not_hold_up_stopping() {
    let lifecycle = Lifecycle::new();
    let (stopping, aborted) = (lifecycle.stopping(), lifecycle.aborted());
    let (asked, mut questions) = tokio::sync::mpsc::channel::<tokio::sync::oneshot::Sender<()>>(1);
    lifecycle.spawn("work", async move {
        stopping.cancelled().await;
        let (answer, answered) = tokio::sync::oneshot::channel();
        asked.send(answer).await.map_err(|_| "support is gone")?;
        answered.await.map_err(|_| "support is gone")
    });
    lifecycle.spawn_support("support", async move {
        while let Some(Some(answer)) = aborted.run_until_cancelled(questions.recv()).await {
            answer.send(()).map_err(|()| "nobody waits")?;
        }
        aborted.cancelled().await;
        Ok::<(), &str>(())
    });
    lifecycle.stop();
    assert_eq!(lifecycle.run(LONG).await, ExitCode::SUCCESS);
}

#[tokio::test(start_paused = true)]
async fn work_that_is_handed_back_when_aborted_gives_success_after_four_fifths_of_the_grace() {
    let lifecycle = Lifecycle::new();
    let aborted = lifecycle.aborted();
    lifecycle.spawn("long work", async move { aborted.cancelled().await });
    lifecycle.stop();
    let began = tokio::time::Instant::now();
    assert_eq!(lifecycle.run(Duration::from_secs(25)).await, ExitCode::SUCCESS);
    assert_eq!(began.elapsed().as_secs(), 20);
}

#[tokio::test]
async fn what_is_to_be_last_runs_when_support_has_ended() {
    let lifecycle = Lifecycle::new();
    let (aborted, order) = (lifecycle.aborted(), Arc::new(Mutex::new(Vec::new())));
    let support = Arc::clone(&order);
    lifecycle.spawn_support("support", async move {
        aborted.cancelled().await;
        support.lock().expect("not poisoned").push("support");
    });
    lifecycle.stop();
    let last = async { order.lock().expect("not poisoned").push("last") };
    assert_eq!(lifecycle.run_then(LONG, last).await, ExitCode::SUCCESS);
    assert_eq!(*order.lock().expect("not poisoned"), ["support", "last"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_last_is_cut_short_by_the_grace_and_fails_nothing() {
    let lifecycle = Lifecycle::new();
    let aborted = lifecycle.aborted();
    lifecycle.spawn("long work", async move { aborted.cancelled().await });
    lifecycle.stop();
    let began = tokio::time::Instant::now();
    assert_eq!(lifecycle.run_then(Duration::from_secs(25), std::future::pending()).await, ExitCode::SUCCESS);
    assert_eq!(began.elapsed().as_secs(), 25);
}

#[tokio::test(start_paused = true)]
async fn work_that_never_ends_is_left_behind_with_a_failure_when_the_grace_is_over() {
    let lifecycle = Lifecycle::new();
    lifecycle.spawn("stuck work", std::future::pending::<()>());
    lifecycle.stop();
    let began = tokio::time::Instant::now();
    assert_eq!(lifecycle.run(Duration::from_secs(25)).await, ExitCode::FAILURE);
    assert_eq!(began.elapsed().as_secs(), 25);
}

#[test]
fn an_error_is_reported_with_its_sources() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot start")]
    struct Outer(#[source] std::io::Error);

    let failure = Err::<(), _>(Outer(std::io::Error::other("disk full"))).failure();
    assert_eq!(failure.as_deref(), Some("cannot start: disk full"));
    assert_eq!(Ok::<(), Outer>(()).failure(), None);
}

#[test]
fn a_runtime_is_left_although_a_thread_is_stuck() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (begun, begins) = tokio::sync::oneshot::channel();
    let code = block_on(|| async {
        tokio::spawn(async move {
            let stuck = move || {
                begun.send(()).expect("the test waits");
                released.recv().expect_err("held until the test is over");
            };
            crate::blocking::Blocking::new(1).run(stuck).await
        });
        begins.await.expect("begins");
        ExitCode::from(7)
    });
    assert_eq!(code, ExitCode::from(7));
    drop(release);
}

#[test]
fn a_termination_signal_lets_tasks_finish() {
    const NAME: &str = "lifecycle::tests::a_termination_signal_lets_tasks_finish";
    if let Ok(task) = std::env::var(TASK) {
        return process_under_test(task);
    }
    assert_eq!(signalled(NAME, "finishing", &["TERM"]), format!("{:?}", ExitCode::SUCCESS));
    assert_eq!(signalled(NAME, "finishing", &["INT"]), format!("{:?}", ExitCode::SUCCESS));
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    const NAME: &str = "lifecycle::tests::a_second_signal_ends_the_process_at_once";
    if let Ok(task) = std::env::var(TASK) {
        return process_under_test(task);
    }
    assert_eq!(signalled(NAME, "stuck", &["TERM", "INT"]), format!("{:?}", ExitCode::from(130)));
}

/// Environment variable with which the tests above start themselves again as the process that
/// receives their signals. Its value selects the task of that process.
const TASK: &str = "SERVICE_TEST_TASK";

/// Runs `test` as a child process, sends it one signal each time it reports that it is ready, and
/// returns its exit code.
fn signalled(test: &str, task: &str, signals: &[&str]) -> String {
    let mut process = Command::new(std::env::current_exe().expect("this test binary"))
        .args(["--exact", test, "--nocapture"])
        .env(TASK, task)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut signals = signals.iter();
    let mut code = None;
    for line in BufReader::new(process.stdout.take().expect("piped")).lines() {
        let line = line.expect("UTF-8");
        if line == "READY" {
            let signal = signals.next().expect("a signal for each stage");
            let sent =
                Command::new("kill").args(["-s", signal, &process.id().to_string()]).status().expect("kill runs");
            assert!(sent.success());
        } else if let Some(shown) = line.strip_prefix("CODE ") {
            code = Some(shown.to_owned());
        }
    }
    assert!(process.wait().expect("ends").success());
    code.expect("the process shows its exit code")
}

fn process_under_test(task: String) {
    let code = block_on(|| async {
        let lifecycle = Lifecycle::new();
        let stopping = lifecycle.stopping();
        let (listening, listens) = tokio::sync::oneshot::channel();
        lifecycle.spawn("task", async move {
            listens.await.expect("run has begun");
            println!("\nREADY");
            stopping.cancelled().await;
            if task == "stuck" {
                println!("\nREADY");
                std::future::pending::<()>().await;
            }
        });
        // `run` listens for signals before its first await.
        let announce = async { listening.send(()).expect("the task waits") };
        tokio::join!(biased; lifecycle.run(LONG), announce).0
    });
    println!("\nCODE {code:?}");
}

//! Work that is started, waited for and followed.

use std::fs;
use std::time::{Duration, Instant};

use e2e::api::text;
use e2e::{PATIENCE, Shell, Stack, films};
use serde_json::{Value, json};
use testkit::{Answer, Received};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::{image, interrupted, nodes, person};

#[tokio::test]
async fn an_action_runs_and_its_result_is_named() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let source = image(&shell, &canvas).await;
    let run = ["action", "run", "resize", &source, "--param", "width=32", "--on", &canvas];
    let done = shell.run(&[&run[..], &["--json"]].concat()).await.json();
    assert_eq!((text(&done, "/status"), &done["images"][0]["width"]), ("succeeded", &json!(32)));
    let graph = shell.run(&["show", &canvas, "--json"]).await.json();
    assert_eq!(text(&graph, "/canvas/connections/0/purpose"), "flow", "the result is connected to its source");
    let quote = shell.run(&[&run[..], &["--dry-run", "--json"]].concat()).await.json();
    assert_eq!(quote["creditCost"], 0);
    let people =
        shell.run(&["action", "run", "resize", &source, "-p", "width=16", "--on", &canvas]).await.expect(0).stdout;
    assert!(people.contains("succeeded") && people.contains("16x12"), "{people}");
    let refused =
        shell.run(&["action", "run", "resize", &source, "-p", "width=0", "--on", &canvas, "--json"]).await.error(3);
    assert_eq!(text(&refused, "/fields/0/field"), "params.width");
    shell.run(&["action", "run", "resize", &source, "-p", "width", "--on", &canvas]).await.expect(2);
}

#[tokio::test]
async fn actions_run_in_a_row_on_several_images() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let (first, second) = (image(&shell, &canvas).await, image(&shell, &canvas).await);
    let turn = r#"{"action": "rotate", "params": {"degrees": 90}}"#;
    let run = ["action", "run", "resize", &first, &second, "-p", "width=32", "--then", turn, "--on", &canvas];
    let quote = shell.run(&[&run[..], &["--dry-run", "--json"]].concat()).await.json();
    assert_eq!(quote["newTargets"].as_array().map(Vec::len), Some(2));
    let people = shell.run(&run).await.expect(0).stdout;
    assert_eq!((people.matches("succeeded").count(), people.matches("24x32").count()), (2, 2), "{people}");
    let overlay = ["action", "run", "overlay-image", &first, "--with", &second, "--on", &canvas, "--no-wait"];
    let handles = shell.run(&overlay).await.expect(0).stdout;
    assert!(handles.starts_with("run:") && handles.lines().count() == 1, "{handles}");
    shell.run(&[&run[..], &["--then", "rotate"]].concat()).await.expect(2);
    let wrong = r#"{"action": "rotate", "params": {"degrees": "far"}}"#;
    let refused = shell.run(&[&run[..], &["--then", wrong, "--json"]].concat()).await.error(3);
    assert_eq!(text(&refused, "/fields/0/field"), "steps[2].params.degrees");
}

#[tokio::test]
async fn a_video_is_uploaded_and_a_frame_of_it_becomes_an_image() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    shell.file("waves.mp4", films::unique(films::REORDERED));
    let put = shell.run(&["asset", "put", "waves.mp4", "--on", &canvas, "--json"]).await.json();
    assert_eq!((text(&put, "/asset/kind"), &put["asset"]["durationSeconds"]), ("video", &json!(1.2)), "{put}");
    let source = text(&put, "/asset/node");
    let people = shell.run(&["action", "show", "video-frame"]).await.expect(0).stdout;
    assert!(people.contains("first|last|time"), "{people}");
    let run = ["action", "run", "video-frame", source, "-p", "at=time", "-p", "seconds=0.5", "--on", &canvas];
    let done = shell.run(&[&run[..], &["--json"]].concat()).await.json();
    assert_eq!((text(&done, "/status"), &done["images"][0]["width"]), ("succeeded", &json!(96)), "{done}");
}

#[tokio::test]
async fn paid_work_needs_an_agreement_off_a_terminal() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let generate = ["generate", "--prompt", "a kite", "--model", "sketch", "--on", &canvas, "--json"];
    let refused = shell.run(&generate).await.error(2);
    assert!(text(&refused, "/message").contains("--yes"), "{refused}");
    let dear = shell.run(&[&generate[..], &["--yes", "--max-credits", "0"]].concat()).await.error(7);
    assert_eq!(text(&dear, "/code"), "payment_required");
    let quote = shell.run(&[&generate[..], &["--dry-run"]].concat()).await.json();
    assert_eq!(quote["creditCost"], 1);
    assert!(user.get("/runs").await.ok()["runs"].as_array().is_some_and(Vec::is_empty), "nothing was started");
    let done = shell.run(&[&generate[..], &["--yes"]].concat()).await.json();
    assert_eq!((text(&done, "/status"), &done["creditCost"]), ("succeeded", &json!(1)));
    let unknown = ["generate", "--prompt", "a kite", "--model", "nope", "--on", &canvas, "--yes"];
    shell.run(&unknown).await.expect(5);
}

#[tokio::test]
async fn a_recipe_runs_with_its_inputs() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let shown = shell.run(&["recipe", "show", "storyboard", "--json"]).await.json();
    let key = text(&shown, "/recipe/inputs/0/key").to_owned();
    let people = shell.run(&["recipe", "show", "storyboard"]).await.expect(0).stdout;
    assert!(people.contains(text(&shown, "/recipe/outputs/0/model/name")), "{people}");
    let input = format!("{key}=-");
    let run = ["recipe", "run", "storyboard", "--input", &input, "--on", &canvas, "--yes", "--json"];
    let done = shell.run_with_input(&run, "A boat leaves the harbor at dawn").await.json();
    assert_eq!((text(&done, "/status"), text(&done, "/operation")), ("succeeded", "recipe"));
    assert_eq!(text(&done, "/inputs/0/summary"), "A boat leaves the harbor at dawn");
    let forked = shell.run(&["recipe", "fork", "storyboard", "--on", &canvas, "--json"]).await.json();
    assert!(forked["changedNodeIds"].as_array().is_some_and(|nodes| !nodes.is_empty()));
    shell.run(&["recipe", "run", "nope", "--on", &canvas, "--yes"]).await.expect(5);
}

#[tokio::test]
async fn a_video_is_made_and_downloaded() {
    let stack = &Stack::with_workers().await;
    let (user, shell, _) = person(stack).await;
    let make =
        ["video", "--prompt", "a walk", "--model", "animatic", "--yes", "--seconds", "1", "--resolution", "480p"];
    let video = [&make[..], &["-o", "video.mp4", "--quiet"]].concat();
    // A command that has ended is a new one the next time, also with another cap.
    shell.run(&video).await.expect(0);
    shell.run(&video).await.expect(0);
    shell.run(&[&video[..], &["--max-credits", "90"]].concat()).await.expect(0);
    assert_eq!(user.get("/runs").await.ok()["runs"].as_array().map(Vec::len), Some(3));
    let file = fs::read(shell.home().join("video.mp4")).expect("a video");
    assert_eq!(&file[4..8], b"ftyp");
    // Standard output is the video alone.
    let piped = [&make[..], &["-o", "-"]].concat();
    for option in ["--json", "--no-wait", "--dry-run"] {
        shell.run(&[&piped[..], &[option]].concat()).await.expect(2);
    }
    let made = shell.start(&piped).wait_with_output().await.expect("ends");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.stdout[4..].starts_with(b"ftyp") && said.contains("succeeded"), "{said}");
    assert_eq!(user.get("/runs").await.ok()["runs"].as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn a_terminal_shows_images_bars_and_questions() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let shell = shell.with("TERM", "xterm-kitty").with("COLUMNS", "120");
    shell.run(&["node", "add", "text", "--text", "hello", "--on", &canvas]).await.expect(0);
    let image = shell.typed(&["view", &canvas, "--width", "256"], "").await.expect(0).stdout;
    assert!(image.starts_with("\u{1b}_Gf=100,a=T,m=0;iVBORw0KGgo"), "{image:?}");
    let shell = shell.with("TERM", "xterm-256color");
    let link = shell.typed(&["view", &canvas], "").await.expect(0).stdout;
    assert!(link.contains("\u{1b}]8;;http") && link.contains("--output FILE"), "{link:?}");
    let generate = ["generate", "--prompt", "a kite", "--model", "sketch", "--on", &canvas];
    let refused = shell.typed(&generate, "n\n").await.expect(2).stdout;
    assert!(refused.contains("This costs 1 credit. Go on? [y/N]"), "{refused}");
    assert!(user.get("/runs").await.ok()["runs"].as_array().is_some_and(Vec::is_empty), "nothing was started");
    let agreed = shell.typed(&generate, "y\n").await.expect(0).stdout;
    assert!(agreed.contains("succeeded (charged 1 credit)"), "{agreed}");
    assert!(agreed.contains(" % "), "a bar is drawn: {agreed:?}");
    let quiet = shell.typed(&[&generate[..], &["--yes", "--quiet"]].concat(), "").await.expect(0).stdout;
    assert!(!quiet.contains(" % "), "{quiet:?}");
}

#[tokio::test]
async fn events_are_one_line_each_and_end_with_what_is_waited_for() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let source = image(&shell, &canvas).await;
    let started = shell
        .run(&["action", "run", "rotate", &source, "-p", "degrees=90", "--on", &canvas, "--no-wait"])
        .await
        .expect(0);
    let run = started.stdout.trim().to_owned();
    let lines = shell.run(&["watch", &run, "--json"]).await.expect(0).lines();
    let last = lines.last().expect("a line");
    assert_eq!((text(last, "/event"), text(last, "/data/status")), ("run", "succeeded"));
    // A run that is over is shown, too.
    let again = shell.run(&["watch", &run, "--json"]).await.expect(0).lines();
    assert_eq!(text(&again[0], "/data/status"), "succeeded");
    // Beside a canvas, too, and by the handle of its job.
    let job = run.replace("run:", "job:");
    for handle in [&run, &job] {
        shell.run(&["watch", &canvas, handle, "--timeout", "20"]).await.expect(0);
    }
    // Nothing runs: the present state of the canvas is shown, and nothing is waited for.
    let ended = shell.run(&["watch", &canvas, "--timeout", "20", "--json"]).await.expect(0);
    assert_eq!([0, 1].map(|at| text(&ended.lines()[at], "/event").to_owned()), ["role", "canvas"]);
    assert_eq!(shell.run(&["watch", "--timeout", "20"]).await.expect(0).stdout, "");
}

#[tokio::test]
async fn a_webhook_is_forwarded_with_the_signature_of_the_secret() {
    let stack = &Stack::with_workers().await;
    const SECRET: &str = "a secret of the receiver's own choice";
    let (_, shell, canvas) = person(stack).await;
    let source = image(&shell, &canvas).await;
    let receiver = stack.take_receiver();
    shell.file("ca.pem", receiver.ca_pem());
    let trusted = shell.home().join("ca.pem").display().to_string();
    let shell = shell.with("SSL_CERT_FILE", &trusted);
    let listen = ["listen", "--forward-to", &receiver.url("/hook?a=b"), "--secret", SECRET];
    for secret in ["", "a short one"] {
        let refused = shell.run_with_input(&listen[..3], secret).await.expect(2).stderr;
        for source in ["--secret", "CANVAS_WEBHOOK_SECRET", "standard input"] {
            assert!(refused.contains(source), "{refused}");
        }
    }
    let mut listening = shell.start(&listen);
    let mut said = BufReader::new(listening.stderr.take().expect("a pipe")).lines();
    let first = said.next_line().await.expect("reads").expect("a line");
    assert!(first.contains("Webhooks of runs"), "{first}");
    let done =
        shell.run(&["action", "run", "rotate", &source, "-p", "degrees=90", "--on", &canvas, "--json"]).await.json();
    let requests = receiver.wait_for(1, PATIENCE).await;
    requests[0].verify_signature(SECRET).expect("is signed");
    let event: Value = serde_json::from_slice(&requests[0].body).expect("JSON");
    assert_eq!((text(&event, "/type"), &event["data"]["run"]["run"]), ("image_job.succeeded", &done["run"]));
    assert!(event["data"]["run"]["images"][0]["previewUrl"].is_null(), "a preview URL is never sent");
    let video = [
        "video",
        "--prompt",
        "a kite",
        "--model",
        "animatic",
        "--yes",
        "--seconds",
        "1",
        "--resolution",
        "480p",
        "--json",
    ];
    let done = shell.run(&video).await.json();
    let requests = receiver.wait_for(2, PATIENCE).await;
    listening.kill().await.expect("ends");
    let event: Value = serde_json::from_slice(&requests[1].body).expect("JSON");
    assert_eq!((text(&event, "/type"), &event["data"]["run"]["id"]), ("video_job.succeeded", &done["id"]));
}

#[tokio::test]
async fn deliveries_are_listed_replayed_and_sent_to_this_machine() {
    let stack = &Stack::with_workers().await;
    const SECRET: &str = "a secret of the receiver's own choice";
    let (user, shell, canvas) = person(stack).await;
    let receiver = stack.take_receiver();
    shell.file("ca.pem", receiver.ca_pem());
    let trusted = shell.home().join("ca.pem").display().to_string();
    let shell = shell.with("SSL_CERT_FILE", &trusted);
    receiver.answer(Answer::status(410));
    let webhook = json!({"webhook": {"url": receiver.url("/hook"), "secret": SECRET}});
    let job = user.start_resize(&canvas, webhook).await;
    user.until(&job, |job| job["webhook"]["status"] == "failed").await;
    let id = text(&job, "/webhook/id");
    let listed = shell.run(&["webhook", "list", "--status", "failed", "-q"]).await.expect(0).stdout;
    assert_eq!(listed.trim(), id);
    let table = shell.run(&["webhook", "list"]).await.expect(0).stdout;
    for shown in [text(&job, "/run"), id, "failed", "endpoint_rejected", "410"] {
        assert!(table.contains(shown), "{shown}: {table}");
    }
    receiver.answer(Answer::status(200));
    let replayed = shell.run_with_input(&["webhook", "replay", "-", "-q"], &format!("{id}\n")).await.expect(0).stdout;
    assert_eq!(replayed.trim(), id);
    let requests = receiver.wait_for(2, PATIENCE).await;
    assert_eq!(requests[1].body, requests[0].body);
    let since = shell.run(&["webhook", "replay", "--since", "2000-01-01T00:00:00Z", "--json"]).await.json();
    assert_eq!(since, json!({"replayed": [], "skipped": []}), "nothing failed");
    shell.run(&["webhook", "replay"]).await.expect(2);

    let to = ["--forward-to", &receiver.url("/local"), "--secret", SECRET];
    let sent = shell.run(&[&["webhook", "trigger", text(&job, "/run")], &to[..]].concat()).await.expect(0).stdout;
    assert!(sent.contains("-> 200"), "{sent}");
    let requests = receiver.wait_for(3, PATIENCE).await;
    requests[2].verify_signature(SECRET).expect("is signed");
    let event = |request: &Received| serde_json::from_slice::<Value>(&request.body).expect("JSON");
    let (delivered, local) = (event(&requests[1]), event(&requests[2]));
    assert_eq!(
        (requests[2].path.as_str(), &local["data"], &local["type"]),
        ("/local", &delivered["data"], &delivered["type"])
    );
}

async fn started(shell: &Shell, canvas: &str) -> Vec<String> {
    let source = image(shell, canvas).await;
    ["action", "run", "rotate", &source, "-p", "degrees=90", "--on", canvas].map(str::to_owned).to_vec()
}

#[tokio::test]
async fn work_that_was_canceled_is_exit_status_1() {
    let stack = &Stack::without_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let source = image(&shell, &canvas).await;
    let started = shell
        .run(&["action", "run", "rotate", &source, "-p", "degrees=90", "--on", &canvas, "--no-wait"])
        .await
        .expect(0);
    let run = started.stdout.trim();
    assert!(run.starts_with("run:"), "{run}");
    let waiting = shell.start(&["run", "wait", run, "--json"]);
    let job = run.replace("run:", "job:");
    let mut watching = shell.start(&["watch", &canvas, &job, "--timeout", "20"]);
    let mut lines = BufReader::new(watching.stdout.take().expect("a pipe")).lines();
    lines.next_line().await.expect("reads").expect("the state of the canvas");
    let canceled = shell.run(&["run", "cancel", run, "--remove-targets", "--json"]).await.json();
    assert_eq!(text(&canceled, "/status"), "canceled");
    let output = waiting.wait_with_output().await.expect("ends");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(watching.wait().await.expect("ends").code(), Some(1));
    assert_eq!(nodes(&shell, &canvas).await.len(), 1, "its empty target is gone");
    let shown = shell.run(&["run", "show", run]).await.expect(0).stdout;
    assert!(shown.contains("canceled"), "{shown}");
}

#[tokio::test]
async fn a_wait_that_is_given_up_is_exit_status_9_and_cancels_nothing() {
    let stack = &Stack::without_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let run = started(&shell, &canvas).await;
    let run: Vec<&str> = run.iter().map(String::as_str).chain(["--timeout", "1"]).collect();
    let began = Instant::now();
    let given_up = shell.run(&run).await.expect(9);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(given_up.stderr.contains("canvas run wait run:"), "{}", given_up.stderr);
    let runs = user.get("/runs").await.ok();
    assert_eq!((runs["runs"].as_array().map(Vec::len), text(&runs, "/runs/0/status")), (Some(1), "queued"));
    shell.run(&["run", "wait", text(&runs, "/runs/0/handle"), "--timeout", "0"]).await.expect(9);
}

#[tokio::test]
async fn runs_that_are_waited_for_share_one_timeout_and_are_all_reported() {
    let stack = &Stack::without_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let run = started(&shell, &canvas).await;
    let run: Vec<&str> = run.iter().map(String::as_str).chain(["--no-wait"]).collect();
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(shell.run(&run).await.expect(0).stdout.trim().to_owned());
    }
    shell.run(&["run", "cancel", &runs[0]]).await.expect(0);
    let began = Instant::now();
    let waited = shell.run(&["run", "wait", &runs[0], &runs[1], &runs[2], "--timeout", "5"]).await.expect(1);
    assert!((5..8).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert!(waited.stdout.contains("canceled"), "{}", waited.stdout);
    for run in &runs[1..] {
        assert!(waited.stderr.contains(&format!("{run} is still running")), "{}", waited.stderr);
    }
}

#[tokio::test]
async fn an_interrupt_is_exit_status_130_and_cancels_nothing() {
    let stack = &Stack::without_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let run = started(&shell, &canvas).await;
    let run: Vec<&str> = run.iter().map(String::as_str).collect();
    let waiting = shell.start(&run);
    let first = super::repetition::first_run(&user).await;
    // The wait has begun when the record has been read.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let output = interrupted(waiting).await;
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("canvas run cancel {first}")), "{said}");
    let waiting = shell.start(&["run", "wait", &first, "--json"]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let output = interrupted(waiting).await;
    assert_eq!(output.status.code(), Some(130));
    // Before the envelope, it was said that no worker is there.
    let said = String::from_utf8_lossy(&output.stderr);
    let envelope: Value = serde_json::from_str(said.lines().last().expect("a line")).expect("an envelope");
    assert_eq!(text(&envelope, "/error/code"), "interrupted");
    assert!(text(&envelope, "/error/message").contains(&format!("canvas run cancel {first}")), "{envelope}");
    assert_eq!(text(&user.get("/runs").await.ok(), "/runs/0/status"), "queued");
}

#[tokio::test]
async fn an_interrupt_ends_a_command_that_reads_standard_input() {
    let stack = &Stack::without_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let commands: [&[&str]; 4] = [
        &["apply", "-", "--on", &canvas],
        &["generate", "--prompt", "-", "--on", &canvas],
        &["recipe", "run", "storyboard", "--input", "brief=-", "--on", &canvas],
        &["mcp"],
    ];
    // Chance decides whether a command listens to interrupts before it reads.
    for arguments in commands.repeat(3) {
        let output = interrupted(shell.start(arguments)).await;
        assert_eq!(output.status.code(), Some(130), "{arguments:?}: {output:?}");
    }
}

#[tokio::test]
async fn a_watch_without_runs_ends_when_none_is_left_or_at_its_timeout() {
    let stack = &Stack::without_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let other = shell.run(&["new", "Other", "-q"]).await.expect(0).stdout.trim().to_owned();
    let run = started(&shell, &canvas).await;
    let run: Vec<&str> = run.iter().map(String::as_str).chain(["--no-wait"]).collect();
    let first = shell.run(&run).await.expect(0).stdout.trim().to_owned();
    shell.run(&["watch", &canvas, "--timeout", "1"]).await.expect(9);
    shell.run(&["watch", "--timeout", "1"]).await.expect(9);
    shell.run(&["watch", &other, "--timeout", "20"]).await.expect(0);
    let slug = text(&user.canvas(&canvas).await, "/slug").to_owned();
    let mut watching = [canvas.as_str(), &slug].map(|subject| shell.start(&["watch", subject, "--timeout", "30"]));
    // A watch ends when nobody reads it.
    let mut readers = Vec::new();
    for watching in &mut watching {
        let mut lines = BufReader::new(watching.stdout.take().expect("a pipe")).lines();
        while !lines.next_line().await.expect("reads").expect("it goes on").starts_with("run:") {}
        readers.push(lines);
    }
    // A run that begins while it watches is watched, too.
    let second = shell.run(&run).await.expect(0).stdout.trim().to_owned();
    shell.run(&["run", "cancel", &first]).await.expect(0);
    for watching in &mut watching {
        assert!(watching.try_wait().expect("is asked").is_none(), "the second run goes on");
    }
    let canceled = shell.run(&["run", "cancel", &second]).await.expect(0).stdout;
    assert!(canceled.starts_with(&format!("{second} canceled (charged 0 credits)")), "{canceled}");
    for watching in &mut watching {
        assert_eq!(watching.wait().await.expect("ends").code(), Some(1), "work was canceled");
    }
    drop(readers);
    // Without the scope for runs there is none to wait for.
    let reader = stack.user_with("canvas:read,asset:read").await;
    stack.share(&user, canvas.rsplit(':').next().expect("an id"), &reader.uid, "viewer").await;
    stack.shell(&reader).run(&["watch", &canvas, "--timeout", "1"]).await.expect(9);
}

#[tokio::test]
async fn states_are_lines_without_a_terminal_and_a_cap_is_an_agreement() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let generate = ["generate", "--prompt", "a kite", "--model", "sketch", "--on", &canvas];
    let below = [&generate[..], &["-n", "2", "--max-credits"]].concat();
    assert_eq!(shell.run(&[&below[..], &["1", "--json"]].concat()).await.error(7)["code"], "payment_required");
    let done = shell.run(&[&below[..], &["2"]].concat()).await.expect(0);
    assert!(done.stdout.contains("(charged 2 credits)"), "{done:?}");
    let states: Vec<&str> = done.stderr.lines().filter(|line| line.starts_with("run:")).collect();
    assert!(states.last().is_some_and(|last| last.ends_with("succeeded 2/2")), "{done:?}");
    let mut apart = states.clone();
    apart.dedup();
    assert_eq!(apart, states, "a state is said once");
    let noted = shell.run(&[&below[..], &["2", "--json"]].concat()).await.expect(0);
    let last: Value = serde_json::from_str(noted.stderr.lines().last().expect("a note")).expect("JSON");
    assert_eq!(text(&last, "/note/message"), "succeeded 2/2");
    assert_eq!(shell.run(&[&below[..], &["2", "-q"]].concat()).await.expect(0).stderr, "");
}

#[tokio::test]
async fn a_cancel_waits_for_the_end_and_says_what_was_charged() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let slow =
        ["generate", "--prompt", "a kite [[sim:slow=3]]", "--model", "sketch", "--yes", "--no-wait", "--on", &canvas];
    let run = shell.run(&slow).await.expect(0).stdout.trim().to_owned();
    let mut waiting = shell.start(&["run", "wait", &run]);
    let mut states = BufReader::new(waiting.stderr.take().expect("a pipe")).lines();
    let state = states.next_line().await.expect("reads").expect("a state");
    assert!(["running", "finalizing"].map(|state| format!("{run} {state}")).contains(&state), "{state}");
    let canceled = shell.run_with_input(&["run", "cancel", "-"], &run).await.expect(0).stdout;
    // What the provider has made by then is kept and charged.
    assert!(canceled.starts_with(&format!("{run} ")) && canceled.contains(" (charged "), "{canceled}");
    let ended = waiting.wait_with_output().await.expect("ends").stdout;
    assert_eq!(String::from_utf8_lossy(&ended), canceled, "it waited for the end");
}

//! Stored addresses and tokens.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use e2e::api::text;
use e2e::{PATIENCE, Shell, Stack, binary};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::unread;

async fn signed_in(stack: &Stack) -> (Shell, String) {
    let user = stack.user().await;
    let shell = Shell::new();
    let login = ["login", "--token-stdin", "--base-url", &stack.origin(0)];
    shell.run_with_input(&login, &format!("{}\n", user.token)).await.expect(0);
    (shell, user.uid)
}

#[tokio::test]
async fn a_token_is_stored_for_its_owner_alone_and_used() {
    let stack = &Stack::without_workers().await;
    let (shell, uid) = signed_in(stack).await;
    let path = shell.home().join(".config/canvas/config.toml");
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    assert_eq!(text(&shell.run(&["whoami", "--json"]).await.json(), "/uid"), uid);
    let list = shell.run(&["profile", "list", "--json"]).await.json();
    assert_eq!(
        (text(&list, "/profiles/0/baseUrl"), &list["profiles"][0]["current"]),
        (stack.origin(0).as_str(), &true.into())
    );
    assert!(!list.to_string().contains("cba_"), "a token is never shown");
    shell.run(&["logout"]).await.expect(0);
    shell.run(&["whoami"]).await.expect(4);
    assert!(!fs::read_to_string(&path).expect("a file").contains("cba_"));
}

#[tokio::test]
async fn a_token_that_is_refused_is_not_stored() {
    let stack = &Stack::without_workers().await;
    let shell = Shell::new();
    let login = ["login", "--token-stdin", "--base-url", &stack.origin(0), "--json"];
    shell.run_with_input(&login, "cba_wrong").await.error(4);
    shell.run_with_input(&login, "").await.error(2);
    assert!(!shell.home().join(".config/canvas/config.toml").exists());
}

#[tokio::test]
async fn a_change_that_cannot_have_its_turn_is_not_made() {
    let stack = &Stack::without_workers().await;
    let (shell, uid) = signed_in(stack).await;
    let lock = fs::File::open(shell.home().join(".config/canvas/config.lock")).expect("a file");
    lock.lock().expect("locks it");
    let refused = shell.run(&["logout"]).await.expect(2).stderr;
    assert!(refused.contains("config.lock"), "{refused}");
    // Nothing that only reads waits.
    assert_eq!(text(&shell.run(&["whoami", "--json"]).await.json(), "/uid"), uid);
    drop(lock);
    shell.run(&["logout"]).await.expect(0);
}

#[tokio::test]
async fn a_configuration_that_others_can_read_is_refused() {
    let stack = &Stack::without_workers().await;
    let (shell, _) = signed_in(stack).await;
    let path = shell.home().join(".config/canvas/config.toml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("sets the mode");
    let refused = shell.run(&["whoami"]).await.expect(2);
    assert!(refused.stderr.contains("chmod 600"), "{}", refused.stderr);
}

#[tokio::test]
async fn flags_come_before_the_environment_and_that_before_the_profile() {
    let stack = &Stack::without_workers().await;
    let (shell, stored) = signed_in(stack).await;
    let other = stack.user().await;
    let shell = shell.with("CANVAS_TOKEN", &other.token);
    assert_eq!(text(&shell.run(&["whoami", "--json"]).await.json(), "/uid"), other.uid);
    let list = shell.run(&["profile", "list", "--json"]).await.json();
    let name = text(&list, "/profiles/0/name");
    let named = shell.run(&["whoami", "--profile", name, "--json"]).await.json();
    assert_eq!(text(&named, "/uid"), stored);
    shell.run(&["whoami", "--profile", "nope"]).await.expect(2);
    shell.run(&["profile", "use", "nope"]).await.expect(2);
    let shell = shell.with("CANVAS_PROFILE", "nope");
    shell.run(&["whoami"]).await.expect(2);
    let addressed = shell.run(&["whoami", "--base-url", &stack.origin(0), "--json"]).await.json();
    assert_eq!(text(&addressed, "/uid"), other.uid);
}

#[tokio::test]
async fn a_token_is_sent_to_its_own_service_alone() {
    let stack = &Stack::without_workers().await;
    let (shell, first) = signed_in(stack).await;
    let refused = shell.run(&["whoami", "--base-url", "http://127.0.0.1:1"]).await.expect(4);
    assert!(refused.stderr.contains("no token for http://127.0.0.1:1"), "{}", refused.stderr);
    let (user, here) = (stack.user().await, stack.origin(0));
    let path = shell.home().join(".config/canvas/config.toml");
    let mut configuration = fs::read_to_string(&path).expect("a file");
    for (name, url, token) in [("elsewhere", "http://127.0.0.1:1", "cba_wrong"), ("second", &here, &user.token)] {
        configuration += &format!("\n[profiles.{name}]\nbase_url = \"{url}\"\ntoken = \"{token}\"\n");
    }
    fs::write(&path, configuration).expect("writes the file");
    // The token of an address is found in whichever profile has it, first in the one that is in use.
    for (profile, uid) in [("elsewhere", &first), ("second", &user.uid)] {
        shell.run(&["profile", "use", profile]).await.expect(0);
        assert_eq!(text(&shell.run(&["whoami", "--base-url", &here, "--json"]).await.json(), "/uid"), uid);
    }
    shell.run(&["whoami", "--base-url", "http://127.0.0.1:2"]).await.expect(4);
}

#[tokio::test]
async fn a_login_renews_the_profile_in_use() {
    let stack = &Stack::without_workers().await;
    let (shell, here) = (Shell::new(), stack.origin(0));
    let login = ["login", "--token-stdin", "--base-url", &here, "--profile", "prod"];
    // Without a profile, and also without an address.
    for arguments in [&login[..], &login[..4], &login[..2]] {
        let user = stack.user().await;
        shell.run_with_input(arguments, &user.token).await.expect(0);
        assert_eq!(text(&shell.run(&["whoami", "--json"]).await.json(), "/uid"), user.uid);
    }
    let list = shell.run(&["profile", "list", "--json"]).await.json();
    assert_eq!((text(&list, "/profiles/0/name"), list["profiles"].as_array().map(Vec::len)), ("prod", Some(1)));
}

/// Starts a line of a shell on a terminal of its own.
fn on_terminal(shell: &Shell, line: &str) -> Child {
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--echo", "always", "--command", line, "/dev/null"]);
    terminal.current_dir(shell.home()).env("HOME", shell.home()).stdin(Stdio::piped()).stdout(Stdio::piped());
    terminal.kill_on_drop(true).spawn().expect("starts a terminal")
}

#[tokio::test]
async fn a_token_is_asked_for_on_a_terminal_alone() {
    let stack = &Stack::builder().env("CANVAS_OAUTH", "off").shared().await;
    let shell = Shell::new();
    let line = format!("{} login --base-url {} 2>log; echo status $?", binary("canvas").display(), stack.origin(0));
    let mut terminal = on_terminal(&shell, &line);
    let _open = terminal.stdin.take();
    let output = timeout(PATIENCE, terminal.wait_with_output()).await.expect("it asks for nothing").expect("ends");
    assert!(String::from_utf8_lossy(&output.stdout).contains("status 2"), "{output:?}");
    let log = fs::read_to_string(shell.home().join("log")).expect("a file");
    assert!(log.contains("--token-stdin"), "{log}");
}

#[tokio::test]
async fn an_interrupted_login_leaves_the_terminal_with_its_echo() {
    let stack = &Stack::builder().env("CANVAS_OAUTH", "off").shared().await;
    let shell = Shell::new();
    // The terminal interrupts the shell, too, which goes on.
    let login = format!("{} login --base-url {}", binary("canvas").display(), stack.origin(0));
    let mut terminal = on_terminal(&shell, &format!("trap : INT; {login}; echo status $?; stty -a"));
    let (mut keys, mut screen) = (terminal.stdin.take().expect("a pipe"), terminal.stdout.take().expect("a pipe"));
    let mut shown = String::new();
    let mut show = async |until: &str| {
        while !shown.contains(until) {
            let mut piece = [0; 4096];
            let length = timeout(PATIENCE, screen.read(&mut piece)).await.expect("it goes on").expect("reads");
            assert!(length > 0, "it ends before it shows {until}: {shown}");
            shown += &String::from_utf8_lossy(&piece[..length]);
        }
        shown.clone()
    };
    show("Token for").await;
    // The echo is turned off right after the question.
    sleep(Duration::from_millis(500)).await;
    keys.write_all(b"\x03").await.expect("types");
    let shown = show("echoe").await;
    assert!(shown.contains("status 130") && !shown.contains("-echo "), "{shown}");
}

#[tokio::test]
async fn without_a_service_the_command_says_what_to_do() {
    let shell = Shell::new();
    let refused = shell.run(&["list"]).await.expect(4);
    assert!(refused.stderr.contains("canvas login"), "{}", refused.stderr);
    let error = shell.run(&["list", "--json"]).await.error(4);
    assert_eq!(text(&error, "/code"), "unauthorized");
    Shell::new().with("CANVAS_TOKEN", "cba_some").run(&["list"]).await.expect(2);
    shell.run(&["completions", "bash"]).await.expect(0);
    assert_eq!(unread(&shell, &["completions", "bash"]).await, Some(0));
    shell.run(&["man", "pages"]).await.expect(0);
    assert!(shell.home().join("pages/canvas-asset-put.1").exists());
    let page = shell.run(&["man"]).await.expect(0).stdout;
    assert!(page.contains("canvas"), "{page}");
}

//! Stored addresses and tokens.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use e2e::api::text;
use e2e::{Shell, Stack, suite};

suite! {
    profiles on Stack::builder();
    a_token_is_stored_for_its_owner_alone_and_used,
    a_token_that_is_refused_is_not_stored,
    a_configuration_that_others_can_read_is_refused,
    flags_come_before_the_environment_and_that_before_the_profile,
    a_token_is_sent_to_its_own_service_alone,
    without_a_service_the_command_says_what_to_do,
}

async fn signed_in(stack: &Stack) -> (Shell, String) {
    let user = stack.user().await;
    let shell = Shell::new();
    let login = ["login", "--token-stdin", "--base-url", &stack.origin(0)];
    shell.told(&login, &format!("{}\n", user.token)).await.expect(0);
    (shell, user.uid)
}

async fn a_token_is_stored_for_its_owner_alone_and_used(stack: &Stack) {
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
    shell.run(&["whoami"]).await.expect(2);
    assert!(!fs::read_to_string(&path).expect("a file").contains("cba_"));
}

async fn a_token_that_is_refused_is_not_stored(stack: &Stack) {
    let shell = Shell::new();
    let login = ["login", "--token-stdin", "--base-url", &stack.origin(0), "--json"];
    shell.told(&login, "cba_wrong").await.error(4);
    shell.told(&login, "").await.error(2);
    assert!(!shell.home().join(".config/canvas/config.toml").exists());
}

async fn a_configuration_that_others_can_read_is_refused(stack: &Stack) {
    let (shell, _) = signed_in(stack).await;
    let path = shell.home().join(".config/canvas/config.toml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("sets the mode");
    let refused = shell.run(&["whoami"]).await.expect(2);
    assert!(refused.stderr.contains("chmod 600"), "{}", refused.stderr);
}

async fn flags_come_before_the_environment_and_that_before_the_profile(stack: &Stack) {
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

async fn a_token_is_sent_to_its_own_service_alone(stack: &Stack) {
    let (shell, _) = signed_in(stack).await;
    let refused = shell.run(&["whoami", "--base-url", "http://127.0.0.1:1"]).await.expect(2);
    assert!(refused.stderr.contains("no token for http://127.0.0.1:1"), "{}", refused.stderr);
}

async fn without_a_service_the_command_says_what_to_do(_: &Stack) {
    let shell = Shell::new();
    let refused = shell.run(&["list"]).await.expect(2);
    assert!(refused.stderr.contains("canvas login"), "{}", refused.stderr);
    shell.run(&["completions", "bash"]).await.expect(0);
    // As with `| head`: nobody reads to the end.
    let mut unread = shell.start(&["completions", "bash"]);
    drop(unread.stdout.take());
    let output = unread.wait_with_output().await.expect("ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    shell.run(&["man", "pages"]).await.expect(0);
    assert!(shell.home().join("pages/canvas-asset-put.1").exists());
    let page = shell.run(&["man"]).await.expect(0).stdout;
    assert!(page.contains("canvas"), "{page}");
}

//! Signing in and out: a person allows the command line access in a browser (docs/reference/oauth.md).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use e2e::api::text;
use e2e::{Account, PATIENCE, Person, Shell, Stack};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::wait_for;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;
use tokio::time::{sleep, timeout};
use url::Url;

use super::interrupted;

/// A home whose browser keeps the address that it is to open.
fn desk() -> Shell {
    let shell = Shell::new();
    let browser = "#!/bin/sh\nprintf %s \"$1\" >\"$HOME/opened\"\nmv \"$HOME/opened\" \"$HOME/page\"\n";
    shell.file("bin/xdg-open", browser);
    let program = shell.home().join("bin/xdg-open");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("sets the mode");
    let path = format!("{}:{}", shell.home().join("bin").display(), std::env::var("PATH").expect("a path"));
    shell.with("PATH", &path)
}

/// The address that the browser was to open.
async fn opened(shell: &Shell) -> Url {
    let page = shell.home().join("page");
    let read = async || {
        let url = fs::read_to_string(&page).ok()?;
        fs::remove_file(&page).expect("removes the file");
        Some(url)
    };
    Url::parse(&wait_for("a page", PATIENCE, read).await).expect("a URL")
}

/// Sends a request to a loopback address as a browser does. Returns the response.
async fn visit(url: &Url) -> String {
    let mut connection = TcpStream::connect(("127.0.0.1", url.port().expect("a port"))).await.expect("connects");
    let target = &url[url::Position::BeforePath..];
    let request = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: test\r\n\r\n");
    connection.write_all(request.as_bytes()).await.expect("sends");
    let mut response = String::new();
    connection.read_to_string(&mut response).await.expect("reads");
    response
}

/// Where the browser goes after the person's decision about the page.
async fn decide(person: &Person, page: &Url, decision: &str) -> Url {
    let body = json!({"query": page.query(), "decision": decision});
    let answer = person.send("/authorizations", &body).await.ok();
    Url::parse(text(&answer, "/redirectTo")).expect("a URL")
}

async fn ended(process: Child) -> Output {
    timeout(PATIENCE, process.wait_with_output()).await.expect("it ends").expect("ends")
}

/// Signs in by the browser. Returns what the command prints.
async fn sign_in(stack: &Stack, shell: &Shell, person: &Person) -> Value {
    let login = shell.start(&["login", "--json", "--base-url", &stack.origin(0)]);
    let redirect = decide(person, &opened(shell).await, "allow").await;
    visit(&redirect).await;
    let output = ended(login).await;
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A stack, a person and a home that is signed in.
async fn signed_in() -> (Stack, Account, Person, Shell) {
    let stack = Stack::without_workers().await;
    let account = stack.account().await;
    let (person, shell) = (stack.person(&account).await, desk());
    sign_in(&stack, &shell, &person).await;
    (stack, account, person, shell)
}

fn configuration(shell: &Shell) -> toml::Table {
    let path = shell.home().join(".config/canvas/config.toml");
    assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    fs::read_to_string(path).expect("a file").parse().expect("TOML")
}

/// The profile of the only service.
fn profile(shell: &Shell) -> toml::Table {
    let profiles = configuration(shell)["profiles"].as_table().expect("profiles").clone();
    profiles.into_iter().next().expect("a profile").1.as_table().expect("a profile").clone()
}

fn write(shell: &Shell, change: impl FnOnce(&mut toml::Table)) {
    let mut table = configuration(shell);
    change(&mut table);
    fs::write(shell.home().join(".config/canvas/config.toml"), table.to_string()).expect("writes the file");
}

/// Makes the access token one that is to be replaced.
fn make_due(shell: &Shell) {
    write(shell, |table| {
        let profiles = table["profiles"].as_table_mut().expect("profiles");
        for (_, profile) in profiles.iter_mut() {
            profile["refresh"]["at"] = 0.into();
        }
    });
}

async fn generation(stack: &Stack, account: &Account) -> i64 {
    stack.count_of("SELECT max(generation)::bigint FROM oauth_grants WHERE account_uid = $1", &account.uid).await
}

async fn apps(person: &Person) -> Vec<Value> {
    person.get("/apps").await.ok()["apps"].as_array().expect("apps").clone()
}

#[tokio::test]
async fn a_person_allows_the_command_line_in_the_browser() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (person, shell, origin) = (stack.person(&account).await, desk(), stack.origin(0));
    let login = shell.start(&["login", "--base-url", &origin]);
    let page = opened(&shell).await;
    assert!(page.as_str().starts_with(&format!("{origin}/oauth/authorize?")), "{page}");
    let preview = person.send("/authorizations/preview", &json!({"query": page.query()})).await.ok();
    assert_eq!(
        (text(&preview, "/request/kind"), text(&preview, "/request/redirectTarget")),
        ("command_line", "loopback")
    );
    let redirect = decide(&person, &page, "allow").await;
    // A browser opens connections ahead, and others may ask, too.
    let _ahead = TcpStream::connect(("127.0.0.1", redirect.port().expect("a port"))).await.expect("connects");
    for (from, to) in [("/callback", "/favicon.ico"), ("state=", "state=x"), ("iss=", "iss=x"), ("code=", "x=")] {
        let wrong = Url::parse(&redirect.as_str().replacen(from, to, 1)).expect("a URL");
        let response = visit(&wrong).await;
        assert!(response.starts_with("HTTP/1.1 404"), "{wrong}: {response}");
    }
    let response = visit(&redirect).await;
    assert!(response.starts_with("HTTP/1.1 200") && response.contains("Signed in."), "{response}");
    assert!(response.contains("Content-Security-Policy: default-src 'none'"), "{response}");
    let output = ended(login).await;
    assert!(output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("cba_"), "{output:?}");
    let status = shell.run(&["whoami", "--json"]).await.json();
    assert_eq!((text(&status, "/uid"), text(&status, "/app/clientId")), (account.uid.as_str(), "canvas-cli"));
    assert_eq!(profile(&shell)["refresh"]["token"].as_str().map(|token| &token[..4]), Some("cbr_"));
    let listed = &apps(&person).await[0];
    assert_eq!((&listed["kind"], &listed["id"]), (&json!("command_line"), &status["agentTokenId"]));
}

#[tokio::test]
async fn a_person_may_deny_the_command_line_access_or_not_answer() {
    let stack = &Stack::without_workers().await;
    let (person, shell, origin) = (stack.person(&stack.account().await).await, desk(), stack.origin(0));
    let login = shell.start(&["login", "--base-url", &origin]);
    let redirect = decide(&person, &opened(&shell).await, "deny").await;
    let response = visit(&redirect).await;
    assert!(response.contains("No access was given."), "{response}");
    let output = ended(login).await;
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the person denied access"), "{output:?}");
    let login = shell.start(&["login", "--base-url", &origin]);
    opened(&shell).await;
    assert_eq!(interrupted(login).await.status.code(), Some(130));
    assert!(!shell.home().join(".config/canvas/config.toml").exists());
    assert!(apps(&person).await.is_empty());
}

/// A line of standard error of a command that goes on.
async fn told(process: &mut Child) -> String {
    let mut lines = BufReader::new(process.stderr.as_mut().expect("a pipe")).lines();
    timeout(PATIENCE, lines.next_line()).await.expect("it tells").expect("reads").expect("a line")
}

#[tokio::test]
async fn a_person_types_the_code_of_a_machine_without_a_browser() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (person, shell, origin) = (stack.person(&account).await, Shell::new(), stack.origin(0));
    // What is needed to go on is told in any case.
    let mut login = shell.start(&["login", "--device", "--json", "--base-url", &origin]);
    let line = told(&mut login).await;
    assert!(line.contains(&format!("{origin}/device")), "{line}");
    let code = line.rsplit(' ').next().expect("a code");
    let mut denied = shell.start(&["login", "--device", "--quiet", "--base-url", &origin]);
    let other = told(&mut denied).await;
    for (code, decision) in [(code, "allow"), (other.rsplit(' ').next().expect("a code"), "deny")] {
        person.send("/devices", &json!({"userCode": code, "decision": decision})).await.expect(204);
    }
    let output = ended(login).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["uid"], json!(account.uid));
    let output = ended(denied).await;
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let status = shell.run(&["whoami", "--json"]).await.json();
    assert_eq!(text(&status, "/agentLabel"), "Canvas command line");
    assert_eq!(apps(&person).await.len(), 1);
    shell.run(&["login", "--device", "--token-stdin", "--base-url", &origin]).await.expect(2);
}

#[tokio::test]
async fn processes_that_refresh_at_once_end_up_with_one_pair() {
    let (stack, account, person, shell) = signed_in().await;
    let (stack, shell) = (&stack, &shell);
    for round in 1..=3 {
        let before = profile(shell);
        make_due(shell);
        let runs = join_all((0..12).map(|_| shell.run(&["whoami", "--json"]))).await;
        for run in runs {
            assert_eq!(text(&run.json(), "/uid"), account.uid);
        }
        assert_eq!(generation(stack, &account).await, round + 1);
        let after = profile(shell);
        assert_ne!((&after["token"], &after["refresh"]), (&before["token"], &before["refresh"]));
    }
    // Nothing is refreshed before it is due.
    shell.run(&["whoami"]).await.expect(0);
    assert_eq!(generation(stack, &account).await, 4);
    // Commands that change something else undo no refresh.
    let canvas = shell.run(&["new", "Board", "-q"]).await.expect(0).stdout;
    make_due(shell);
    let name = configuration(shell)["current"].as_str().expect("a name").to_owned();
    let commands = [&["use", canvas.trim()][..], &["whoami"], &["profile", "use", &name]];
    for run in join_all(commands.map(|arguments| shell.run(arguments))).await {
        run.expect(0);
    }
    assert!(configuration(shell)["canvases"].as_table().is_some_and(|canvases| canvases.len() == 1));
    for _ in 0..2 {
        make_due(shell);
        shell.run(&["whoami"]).await.expect(0);
    }
    assert_eq!((generation(stack, &account).await, apps(&person).await.len()), (7, 1));
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_refreshes_ends_no_access() {
    let (stack, account, person, shell) = signed_in().await;
    // The service has answered, and the answer was not stored.
    make_due(&shell);
    let before = configuration(&shell);
    shell.run(&["whoami"]).await.expect(0);
    let first = profile(&shell);
    write(&shell, |table| *table = before);
    shell.run(&["whoami"]).await.expect(0);
    assert_eq!(profile(&shell)["token"], first["token"]);
    assert_eq!(generation(&stack, &account).await, 2);
    // At any time.
    for wait in (0..60).step_by(6) {
        make_due(&shell);
        let mut process = shell.start(&["whoami"]);
        sleep(Duration::from_millis(wait)).await;
        process.kill().await.expect("kills it");
        shell.run(&["whoami"]).await.expect(0);
    }
    assert_eq!(apps(&person).await.len(), 1);
}

#[tokio::test]
async fn a_logout_ends_the_access() {
    let (stack, _, person, shell) = signed_in().await;
    let token = profile(&shell)["token"].as_str().expect("a token").to_owned();
    make_due(&shell);
    let said = shell.run(&["logout", "--json"]).await.json();
    assert_eq!(said["revoked"], json!(true));
    stack.anonymous().with_token(&token).get("/auth/status").await.expect(401);
    assert!(apps(&person).await.is_empty());
    shell.run(&["whoami"]).await.expect(4);
    shell.run(&["logout"]).await.expect(2);
    // A service that is gone cannot be told; a token is the person's to revoke.
    for (name, refresh, advice) in [
        ("gone", "[profiles.gone.refresh]\ntoken = \"cbr_x.y\"\nat = 0\n", "Settings, Apps"),
        ("token", "", "Settings, Tokens"),
    ] {
        let path = shell.home().join(".config/canvas/config.toml");
        let profile = format!("[profiles.{name}]\nbase_url = \"http://127.0.0.1:1\"\ntoken = \"cba_x.y\"\n");
        fs::write(&path, format!("current = \"{name}\"\n{profile}{refresh}")).expect("writes the file");
        let said = shell.run(&["logout"]).await.expect(0).stdout;
        assert!(said.contains(advice), "{said}");
        assert!(!fs::read_to_string(&path).expect("a file").contains("cba_"));
    }
}

#[tokio::test]
async fn an_access_that_has_ended_is_told_and_the_next_login_replaces_it() {
    let (stack, account, person, shell) = signed_in().await;
    let first = apps(&person).await[0]["id"].as_str().expect("an id").to_owned();
    person.delete(&format!("/apps/{first}")).await.expect(204);
    for _ in 0..2 {
        let refused = shell.run(&["whoami"]).await.expect(4);
        assert!(refused.stderr.contains("canvas login"), "{}", refused.stderr);
        // Neither token is good any more.
        make_due(&shell);
    }
    sign_in(&stack, &shell, &person).await;
    let second = apps(&person).await[0]["id"].clone();
    // One that is replaced is ended, by a token as well.
    let status = sign_in(&stack, &shell, &person).await;
    let listed = apps(&person).await;
    assert_eq!((listed.len(), &listed[0]["id"]), (1, &status["agentTokenId"]));
    assert_ne!(listed[0]["id"], second);
    let user = stack.user_of(&account, "all").await;
    shell.run_with_input(&["login", "--token-stdin"], &user.token).await.expect(0);
    assert!(apps(&person).await.is_empty() && !profile(&shell).contains_key("refresh"));
}

#[tokio::test]
async fn without_oauth_a_login_asks_for_a_token() {
    let stack = Stack::builder().env("CANVAS_OAUTH", "off").shared().await;
    let (user, shell, origin) = (stack.user().await, Shell::new(), stack.origin(0));
    shell.run(&["login", "--device", "--base-url", &origin]).await.expect(2);
    shell.run_with_input(&["login", "--base-url", &origin], &user.token).await.expect(0);
    assert_eq!(text(&shell.run(&["whoami", "--json"]).await.json(), "/uid"), user.uid);
    shell.run(&["login", "--base-url", "http://127.0.0.1:1"]).await.expect(8);
}

/// A service that gives these answers to requests such as `GET /path`, for its own origin. Returns that, and the requests as they come.
async fn stub(
    answer: impl Fn(&str, &str) -> (StatusCode, Value) + Clone + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds a free port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (own, seen) = (origin.clone(), Arc::clone(&requests));
    let respond = move |method: Method, uri: Uri| {
        let request = format!("{method} {}", uri.path());
        let (status, body) = answer(&own, &request);
        seen.lock().expect("a lock").push(request);
        async move { (status, axum::Json(body)) }
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(respond)).await });
    (origin, requests)
}

const METADATA: &str = "GET /.well-known/oauth-authorization-server";

/// The metadata of a service.
fn metadata(issuer: &str) -> (StatusCode, Value) {
    let endpoint = format!("{issuer}/oauth/device");
    (StatusCode::OK, json!({"issuer": issuer, "device_authorization_endpoint": endpoint}))
}

/// A device code that is typed at `origin`.
fn device_code(origin: &str) -> (StatusCode, Value) {
    let code = json!({
        "device_code": "cbd_x",
        "user_code": "BCDF-GHJK",
        "verification_uri": format!("{origin}/device"),
        "expires_in": 600,
        "interval": 0,
    });
    (StatusCode::OK, code)
}

#[tokio::test]
async fn a_service_that_sends_people_to_another_one_is_refused() {
    let (origin, requests) = stub(|_, _| metadata("https://other.example")).await;
    let shell = desk();
    for login in [&["login", "--base-url", &origin][..], &["login", "--device", "--base-url", &origin]] {
        let refused = shell.run(login).await.expect(2).stderr;
        assert!(refused.contains("use --base-url https://other.example"), "{refused}");
    }
    assert_eq!(*requests.lock().expect("a lock"), [METADATA; 2]);
    assert!(!shell.home().join("page").exists());
    let (origin, _) = stub(|origin, request| match request {
        METADATA => metadata(origin),
        _ => device_code("https://other.example"),
    })
    .await;
    let refused = shell.run(&["login", "--device", "--base-url", &origin]).await.expect(2).stderr;
    assert!(!refused.contains("BCDF-GHJK"), "{refused}");
}

#[tokio::test]
async fn a_service_that_cannot_say_whether_it_has_oauth_is_given_no_token() {
    let (origin, requests) = stub(|_, _| (StatusCode::SERVICE_UNAVAILABLE, json!({}))).await;
    let failed = Shell::new().run_with_input(&["login", "--base-url", &origin], "cba_x.y").await.expect(8).stderr;
    assert!(failed.contains(&origin) && failed.contains("503"), "{failed}");
    assert_eq!(*requests.lock().expect("a lock"), [METADATA]);
}

#[tokio::test]
async fn an_access_that_cannot_be_stored_is_ended() {
    let (origin, requests) = stub(|origin, request| match request {
        METADATA => metadata(origin),
        "POST /oauth/device" => device_code(origin),
        "POST /oauth/token" => {
            let tokens = json!({"access_token": "cba_x.y", "refresh_token": "cbr_x.y", "expires_in": 3600});
            (StatusCode::OK, tokens)
        }
        "POST /oauth/revoke" => (StatusCode::OK, json!({})),
        _ => (StatusCode::FORBIDDEN, json!({})),
    })
    .await;
    Shell::new().run(&["login", "--device", "--base-url", &origin]).await.expect(4);
    assert_eq!(requests.lock().expect("a lock").last().map(String::as_str), Some("POST /oauth/revoke"));
}

#[tokio::test]
async fn a_refresh_that_fails_is_told_when_the_token_has_ended() {
    for (status, code) in [(StatusCode::SERVICE_UNAVAILABLE, 8), (StatusCode::BAD_REQUEST, 4)] {
        let (origin, requests) = stub(move |_, request| match request {
            "POST /oauth/token" => (status, json!({"error": "some", "error_description": "a \u{1b}reason"})),
            _ => (StatusCode::NOT_FOUND, json!({})),
        })
        .await;
        let shell = Shell::new();
        let store = |end: i64| {
            let profile = format!("[profiles.stub]\nbase_url = \"{origin}\"\ntoken = \"cba_x.y\"\n");
            let refresh = format!("[profiles.stub.refresh]\ntoken = \"cbr_x.y\"\nat = 0\nend = {end}\n");
            let file = ".config/canvas/config.toml";
            shell.file(file, format!("current = \"stub\"\n{profile}{refresh}"));
            let path = shell.home().join(file);
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("sets the mode");
        };
        store(0);
        let failed = shell.run(&["whoami"]).await.expect(code).stderr;
        assert!(failed.contains("a reason"), "{failed}");
        // The command is repeated more often than the service is asked for a token.
        let asked = std::mem::take(&mut *requests.lock().expect("a lock"));
        assert!(asked.len() <= 2 && asked.iter().all(|request| request == "POST /oauth/token"), "{asked:?}");
        // The token is good until its end.
        store(i64::from(u32::MAX));
        shell.run(&["whoami"]).await.expect(5);
        assert_eq!(requests.lock().expect("a lock").len(), 2);
    }
}

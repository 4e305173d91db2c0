//! Signing in and out. A person allows the access of this program in a browser (docs/reference/oauth.md), or gives it a token.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, stdin};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use domain::account::AuthStatus;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::args::{Global, Login};
use crate::context::{Credential, connect, text_or_stdin};
use crate::failure::{Failure, Outcome, no_token, usage};
use crate::oauth::{Refusal, Server};
use crate::output::{Output, text};
use crate::profile::{Configuration, Profile};
use crate::terminal;

/// The grant type of device codes.
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// How long a person has to decide in the browser.
const DECISION_TIME: Duration = Duration::from_mins(10);
/// How long a request to the loopback address may take.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// The longest request to the loopback address, in bytes.
const REQUEST_MAX: u64 = 16 * 1024;
/// Seconds that a server that is asked too often wants between two requests in addition.
const SLOWER: Duration = Duration::from_secs(5);

pub async fn login(global: &Global, login: &Login) -> Outcome {
    let configuration = Configuration::load()?;
    let name = global.profile.as_ref().or(configuration.current.as_ref());
    let known = name.and_then(|name| configuration.profiles.get(name));
    let Some(url) = global.base_url.clone().or_else(|| known.map(|profile| profile.base_url.clone())) else {
        return usage("name the service: canvas login --base-url URL");
    };
    let output = Output::new(global.json, global.quiet);
    let profile = access(login, &url, &output).await?;
    let stored = store(global, &url, &profile).await;
    if stored.is_err() {
        // Nobody has this access, and it would stay among the apps of the person.
        end(&profile).await;
    }
    let Stored { status, name, replaced } = stored?;
    if let Some(replaced) = replaced {
        end(&replaced).await;
    }
    output.answer(&status, |it| {
        format!("Signed in to {url} as {}. The profile {name} is used from now on.", text(it.email))
    });
    Ok(())
}

/// A profile that was stored.
struct Stored {
    /// What the service says of it.
    status: client::Answer<AuthStatus>,
    name: String,
    /// The profile that had this name.
    replaced: Option<Profile>,
}

/// Stores a profile of the service at `url`, if that accepts it, and uses it from now on.
async fn store(global: &Global, url: &str, profile: &Profile) -> Outcome<Stored> {
    let status = connect(url, Credential::Token(profile.token.clone()))?.get_auth_status().await?;
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
    Configuration::change(|configuration| {
        // The profile that is in use keeps its name and gets the new token, unless it is of another service.
        let known = configuration.current.clone().filter(|_| configuration.current().is_some_and(|it| it.is_of(url)));
        let name = global.profile.clone().or(known).unwrap_or_else(|| host.to_owned());
        let replaced = configuration.profiles.insert(name.clone(), profile.clone());
        configuration.current = Some(name.clone());
        Ok(Stored { status, name, replaced })
    })
    .await
}

pub async fn logout(global: &Global) -> Outcome {
    let configuration = Configuration::load()?;
    let Some(name) = global.profile.as_ref().or(configuration.current.as_ref()) else {
        return usage("no profile is in use");
    };
    let Some(profile) = configuration.profiles.get(name) else {
        return usage(format!("there is no profile {name}"));
    };
    // First, so that a logout that is interrupted between the two can be repeated.
    let is_revoked = end(profile).await;
    Configuration::change(|configuration| {
        configuration.profiles.remove(name);
        configuration.current = configuration.current.take().filter(|current| current != name);
        Ok(())
    })
    .await?;
    Output::new(global.json, global.quiet).value(&json!({"profile": name, "revoked": is_revoked}), || {
        match (is_revoked, &profile.refresh) {
            (true, _) => format!("The access of {name} has ended."),
            (false, Some(_)) => format!(
                "The access of {name} is forgotten here, but {} did not end it: end it in the console (Settings, Apps).",
                profile.base_url
            ),
            (false, None) => format!(
                "The token of {name} is forgotten here. It stays valid: revoke it in the console (Settings, Tokens)."
            ),
        }
    });
    Ok(())
}

/// Ends the access of a profile that was allowed in the browser. Returns `false` if it goes on.
async fn end(profile: &Profile) -> bool {
    match (&profile.refresh, Server::new(&profile.base_url)) {
        (Some(refresh), Ok(server)) => server.revoke(refresh).await,
        _ => false,
    }
}

/// Access to the service at `url`.
async fn access(login: &Login, url: &str, output: &Output) -> Outcome<Profile> {
    if !login.token_stdin {
        let server = Server::new(url)?;
        match server.issuer().await? {
            Some(_) if login.device => return by_code(&server, output).await,
            Some(issuer) => return by_browser(&server, &issuer, output).await,
            None if login.device => return usage(format!("{url} has no device codes: use --token-stdin")),
            None => {}
        }
    }
    let token = token(login, url).await?;
    Ok(Profile { base_url: url.trim_end_matches('/').to_owned(), token, refresh: None })
}

/// A token, from standard input or typed without an echo. Never an argument: those are seen by others and kept by shells.
async fn token(login: &Login, url: &str) -> Outcome<String> {
    let token = if login.token_stdin || !stdin().is_terminal() {
        text_or_stdin("-").await?.trim().to_owned()
    } else {
        let question = format!("Token for {url} (make one in the console: Settings, Tokens)");
        terminal::secret(&question, "--token-stdin reads the token from standard input").await?
    };
    match token.is_empty() {
        true => usage("no token was given"),
        false => Ok(token),
    }
}

fn refused<T>(Refusal { error_description, .. }: Refusal) -> Outcome<T> {
    no_token(format!("there is no access: {error_description}"))
}

/// Asks in the browser of this machine, which brings the answer to a loopback address.
async fn by_browser(server: &Server, issuer: &str, output: &Output) -> Outcome<Profile> {
    let local = |error: io::Error| Failure::Usage(format!("no loopback address can be used ({error}): try --device"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(local)?;
    let redirect_uri = format!("http://{}/callback", listener.local_addr().map_err(local)?);
    let (state, verifier) = (secret(), secret());
    let page = Server::authorization(
        issuer,
        &[
            ("response_type", "code"),
            ("redirect_uri", &redirect_uri),
            ("state", &state),
            ("code_challenge", &BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier))),
            ("code_challenge_method", "S256"),
        ],
    );
    output.error_line(format!("Allow access in your browser: {}", text(&page)));
    if !terminal::browse(&page) {
        output.error_line("There is no browser here: open the address yourself, or sign in with --device.");
    }
    let Ok(answer) = timeout(DECISION_TIME, receive(&listener, &state, issuer)).await else {
        return no_token("nobody has allowed access within 10 minutes");
    };
    let code = answer.map_err(local)?.or_else(|error| no_token(format!("there is no access: {}", text(error))))?;
    let form = [("code", code.as_str()), ("redirect_uri", &redirect_uri), ("code_verifier", &verifier)];
    server.tokens("authorization_code", &form).await?.or_else(refused)
}

/// 64 random characters.
fn secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}

/// A code, or why there is none.
type Answer = Result<String, String>;

/// Waits for the browser to bring the answer. Browsers open connections ahead, and others on this machine may connect, so that several
/// are read at once and those without the answer change nothing.
async fn receive(listener: &TcpListener, state: &str, issuer: &str) -> io::Result<Answer> {
    let mut requests = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => requests.push(timeout(REQUEST_TIME, respond(accepted?.0, state, issuer))),
            Some(request) = requests.next() => {
                if let Ok(Some(answer)) = request {
                    return Ok(answer);
                }
            }
        }
    }
}

/// Reads a request, and shows a page to the person. Returns the answer, if the request brings it.
async fn respond(mut connection: TcpStream, state: &str, issuer: &str) -> Option<Answer> {
    let target = target(&mut connection).await?;
    let answer = parse_answer(&target, state, issuer);
    let (status, text) = match answer {
        Some(Ok(_)) => ("200 OK", "Signed in. You can close this page and go back to your terminal."),
        Some(Err(_)) => ("200 OK", "No access was given. You can close this page."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>Canvas</title><body style=\"font:1.1rem system-ui;margin:15vh 10vw\">\
         <p>{text}</p></body></html>\n"
    );
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nReferrer-Policy: no-referrer\r\n\
         Connection: close\r\n\r\n",
        page.len()
    );
    // The answer counts, whether or not the person sees this.
    let _ = connection.write_all((head + &page).as_bytes()).await;
    let _ = connection.shutdown().await;
    answer
}

/// The target of a GET request.
async fn target(connection: &mut TcpStream) -> Option<String> {
    let mut lines = BufReader::new(connection.take(REQUEST_MAX)).lines();
    let first = lines.next_line().await.ok()??;
    // All of it is read: a connection that is closed before may be reset, and the page lost.
    while lines.next_line().await.ok()?.is_some_and(|line| !line.is_empty()) {}
    first.strip_prefix("GET ")?.split(' ').next().map(str::to_owned)
}

/// The answer in the target of a request; `None` if it is not that of this issuer to the request with this state.
fn parse_answer(target: &str, state: &str, issuer: &str) -> Option<Answer> {
    let query = target.strip_prefix("/callback?")?;
    let mut told: BTreeMap<_, _> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let is = |name: &str, expected: &str| told.get(name).is_some_and(|value| value == expected);
    if !is("state", state) || !is("iss", issuer) {
        return None;
    }
    match told.remove("code") {
        Some(code) => Some(Ok(code)),
        None => told.remove("error_description").or(told.remove("error")).map(Err),
    }
}

/// The answer with a device code (RFC 8628, section 3.2).
#[derive(Deserialize)]
struct DeviceCode {
    device_code: String,
    user_code: String,
    verification_uri: String,
    expires_in: u64,
    interval: u64,
}

/// Shows a code that a person types in a browser elsewhere.
async fn by_code(server: &Server, output: &Output) -> Outcome<Profile> {
    let code: DeviceCode = server.post("/oauth/device", &[]).await?.or_else(refused)?;
    // Typed at another service, the code would give access to that.
    if !server.has(&code.verification_uri) {
        return usage(format!(
            "the service sends people to {}, which is not a page of it",
            text(code.verification_uri)
        ));
    }
    output.error_line(format!(
        "Open {} in a browser and type the code {}",
        text(code.verification_uri),
        text(code.user_code)
    ));
    let polled = poll(server, &code.device_code, Duration::from_secs(code.interval));
    // The server says so itself, if it can be reached.
    match timeout(Duration::from_secs(code.expires_in) + REQUEST_TIME, polled).await {
        Ok(polled) => polled,
        Err(_) => no_token("the code has expired"),
    }
}

async fn poll(server: &Server, device_code: &str, mut interval: Duration) -> Outcome<Profile> {
    loop {
        sleep(interval).await;
        match server.tokens(DEVICE_CODE, &[("device_code", device_code)]).await {
            Ok(Ok(profile)) => return Ok(profile),
            Ok(Err(refusal)) if refusal.error == "authorization_pending" => {}
            Ok(Err(refusal)) if refusal.error == "slow_down" => interval += SLOWER,
            Ok(Err(refusal)) => return refused(refusal),
            // Nobody answers, or the service is busy: the code is still good.
            Err(Failure::Service(_) | Failure::Disconnected(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_that_of_the_issuer_to_the_request() {
        let parse = |target: &str| parse_answer(target, "s", "https://canvas.example");
        let iss = "iss=https%3A%2F%2Fcanvas.example";
        assert_eq!(parse(&format!("/callback?code=c&state=s&{iss}")), Some(Ok("c".into())));
        let denied = format!("/callback?error=access_denied&error_description=the+person+denied&state=s&{iss}");
        assert_eq!(parse(&denied), Some(Err("the person denied".into())));
        for wrong in [
            "/",
            "/favicon.ico",
            "/callback",
            &format!("/callback?code=c&state=x&{iss}"),
            &format!("/callback?code=c&{iss}"),
            "/callback?code=c&state=s",
            "/callback?code=c&state=s&iss=https%3A%2F%2Fevil.example",
            &format!("/callback?state=s&{iss}"),
            &format!("/other?code=c&state=s&{iss}"),
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}

//! Sign-in with OpenID providers (docs/reference/signin.md), against one that answers what it is told to.

mod attacks;
mod people;

use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use e2e::{Person, Stack};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::openid::{CLIENT, OpenId};
use tokio::time::sleep;

/// A service with the file of its providers.
struct Service {
    stack: Stack,
    file: PathBuf,
}

impl Deref for Service {
    type Target = Stack;
    fn deref(&self) -> &Stack {
        &self.stack
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        std::fs::remove_file(&self.file).ok();
    }
}

/// A service whose only provider is `main`.
struct Site {
    stack: Service,
    openid: OpenId,
}

/// A sign-in that a browser began.
struct Begun {
    cookie: String,
    state: String,
    nonce: String,
}

impl Site {
    async fn start(settings: Value) -> Self {
        Self::with(settings, 1).await
    }

    async fn with(settings: Value, gateways: usize) -> Self {
        let openid = OpenId::start().await;
        let stack = start_with(&[("main", &openid, settings)], gateways).await;
        Self { stack, openid }
    }

    async fn begin(&self) -> Begun {
        begin(&self.stack, "main").await
    }

    /// Ends a sign-in with an ID token, and returns the session or the problem.
    async fn end(&self, begun: &Begun, id_token: &str) -> Result<Person, String> {
        let code = self.openid.grant(id_token);
        end(&self.stack, "main", begun, &format!("code={code}&state={}", begun.state)).await
    }

    /// Signs a person in whose claims are those of a right token, changed.
    async fn sign_in(&self, subject: &str, change: Value) -> Result<Person, String> {
        let begun = self.begin().await;
        self.end(&begun, &self.openid.signer.sign(&self.claims(subject, &begun, change))).await
    }

    /// What a sign-in leads to while the provider fails. Afterwards it is asked again, which takes a second.
    async fn failure(&self, subject: &str) -> String {
        let problem = self.sign_in(subject, email(subject)).await.err().expect("a problem");
        sleep(Duration::from_millis(1100)).await;
        problem
    }

    fn claims(&self, subject: &str, begun: &Begun, change: Value) -> Value {
        let mut claims = self.openid.claims(subject, &begun.nonce);
        let members = claims.as_object_mut().expect("an object");
        for (name, value) in change.as_object().expect("an object") {
            // `null` leaves a claim out.
            match value {
                Value::Null => drop(members.remove(name)),
                value => drop(members.insert(name.clone(), value.clone())),
            }
        }
        claims
    }

    /// What a sign-in with this token leads to, which is a refusal.
    async fn refusal(&self, token: impl FnOnce(&Begun) -> String) -> String {
        let begun = self.begin().await;
        self.end(&begun, &token(&begun)).await.err().expect("nobody is signed in")
    }
}

/// A service with these providers: their ids, and members of their settings.
async fn start_with(providers: &[(&str, &OpenId, Value)], gateways: usize) -> Service {
    let written: Vec<Value> = providers
        .iter()
        .map(|(id, openid, settings)| {
            let mut provider = json!({ "id": id, "issuer": openid.issuer, "clientId": CLIENT, "link": "email" });
            let members = settings.as_object().expect("an object").clone();
            provider.as_object_mut().expect("an object").extend(members);
            provider
        })
        .collect();
    let file = std::env::temp_dir().join(format!("canvas-oidc-{}.json", uuid::Uuid::new_v4().simple()));
    std::fs::write(&file, Value::from(written).to_string()).expect("writes");
    let builder = Stack::builder().gateways(gateways).env("CANVAS_OIDC_FILE", file.display());
    // Signing in has a limit for each address, and all of these have one.
    let stack = builder.env("CANVAS_FAILED_AUTH_PER_MINUTE", 0).start().await;
    Service { stack, file }
}

async fn begin(stack: &Stack, provider: &str) -> Begun {
    let reply = stack.anonymous().get(&format!("/console/oidc/{provider}/start")).await.expect(303);
    let url = url::Url::parse(reply.header("location").expect("a location")).expect("a URL");
    let asked = |name: &str| url.query_pairs().find(|(known, _)| known == name).expect("asks").1.into_owned();
    assert_eq!((asked("response_type"), asked("code_challenge_method")), ("code".to_owned(), "S256".to_owned()));
    assert_eq!(asked("redirect_uri"), format!("{}/console/oidc/{provider}/callback", stack.origin(0)));
    let set = reply.header("set-cookie").expect("a cookie");
    assert!(set.ends_with("; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600"), "{set}");
    let cookie = set.split(';').next().expect("a pair").to_owned();
    Begun { cookie, state: asked("state"), nonce: asked("nonce") }
}

/// Sends a browser to the callback, and returns the session or the problem.
async fn end(stack: &Stack, provider: &str, begun: &Begun, query: &str) -> Result<Person, String> {
    let call = stack.anonymous().get(&format!("/console/oidc/{provider}/callback?{query}"));
    let reply = call.header("cookie", &begun.cookie).await.expect(303);
    let location = reply.header("location").expect("a location");
    let cookies: Vec<&str> = reply.headers.get_all("set-cookie").iter().filter_map(|it| it.to_str().ok()).collect();
    assert!(cookies[0].starts_with("__Host-canvas-signin=;") && cookies[0].ends_with("Max-Age=0"), "{cookies:?}");
    match location {
        "/signin/done" => {
            let session = cookies[1].strip_prefix("__Host-canvas=").expect("a session").split(';').next();
            assert!(cookies[1].contains("SameSite=Strict"));
            Ok(stack.person_of(session.expect("a value")))
        }
        other => {
            assert_eq!(cookies.len(), 1, "{cookies:?}");
            let problem =
                other.strip_prefix("/signin?problem=").or_else(|| other.strip_prefix("/settings/signin?problem="));
            Err(problem.unwrap_or(other).to_owned())
        }
    }
}

fn email(name: &str) -> Value {
    json!({ "email": format!("{name}@example.com"), "email_verified": true })
}

async fn uid_of(person: &Person) -> String {
    person.get("/session").await.ok()["account"]["id"].as_str().expect("a uid").to_owned()
}

/// Sends a logout token and returns the status.
async fn log_out(stack: &Stack, token: &str) -> u16 {
    let call = stack.anonymous().call(Method::POST, "/console/oidc/main/logout");
    let form = format!("logout_token={token}");
    let reply = call.body("application/x-www-form-urlencoded", form).attempt().await.expect("is answered");
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    if reply.status != 200 {
        assert_eq!(reply.json(), json!({ "error": "invalid_request" }));
    }
    reply.status
}

//! OAuth 2.1 for programs that people authorize (docs/reference/oauth.md).

mod budgets;
mod clients;
mod codes;
mod consent;
mod devices;
mod metadata;
mod refresh;
mod revocation;

use std::collections::BTreeMap;

use e2e::{Call, Client, Person, Reply, Stack};
use serde_json::{Value, json};
use service::keys::code_challenge;
use url::Url;

/// The redirect address of the client of most tests.
const REDIRECT: &str = "https://app.example/callback";
const VERIFIER: &str = "a-verifier-of-forty-three-characters-0123456";

async fn stack() -> Stack {
    Stack::without_workers().await
}

/// Registers a client. Returns its id.
async fn register(stack: &Stack, redirect_uri: &str) -> String {
    let body = json!({"client_name": "Test app", "redirect_uris": [redirect_uri]});
    let made = stack.anonymous().send("/oauth/register", &body).await.expect(201).json();
    made["client_id"].as_str().expect("a client id").to_owned()
}

/// The query of an authorization request with these parameters in place of, or besides, the usual ones. `None` leaves one out.
fn query(client_id: &str, changes: &[(&str, Option<&str>)]) -> String {
    let challenge = code_challenge(VERIFIER);
    let mut parameters: BTreeMap<&str, &str> = BTreeMap::from([
        ("client_id", client_id),
        ("redirect_uri", REDIRECT),
        ("response_type", "code"),
        ("state", "a state"),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
    ]);
    for &(name, value) in changes {
        parameters.remove(name);
        parameters.extend(value.map(|value| (name, value)));
    }
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish()
}

/// The request of the page by which a person decides.
fn decide(person: &Person, query: &str, changes: Value) -> Call {
    let mut body = json!({"query": query, "decision": "allow", "canvases": "all", "expiresDays": 90});
    for (name, value) in changes.as_object().expect("members") {
        body[name] = value.clone();
    }
    body.as_object_mut().expect("members").retain(|_, value| !value.is_null());
    person.send("/authorizations", &body)
}

/// The parameters of the address that tells a client of a decision.
fn told(answer: &Value) -> BTreeMap<String, String> {
    let url = Url::parse(answer["redirectTo"].as_str().expect("an address")).expect("a URL");
    url.query_pairs().into_owned().collect()
}

/// A person who allows a client, and that client.
struct Flow {
    person: Person,
    client_id: String,
    client: Client,
}

/// A pair of tokens.
#[derive(Clone, Debug, PartialEq)]
struct Tokens {
    access: String,
    refresh: String,
    scope: String,
}

impl From<Value> for Tokens {
    fn from(answer: Value) -> Self {
        assert_eq!(answer["token_type"], "Bearer");
        assert!(answer["expires_in"].as_i64().is_some_and(|seconds| (1..=3600).contains(&seconds)), "{answer}");
        let text = |name: &str| answer[name].as_str().expect("a text").to_owned();
        Self { access: text("access_token"), refresh: text("refresh_token"), scope: text("scope") }
    }
}

impl Flow {
    async fn new(stack: &Stack) -> Self {
        let account = stack.account().await;
        let client_id = register(stack, REDIRECT).await;
        Self { person: stack.person(&account).await, client_id, client: stack.anonymous() }
    }

    /// The code of a request with these changes that the person allows.
    async fn code(&self, changes: &[(&str, Option<&str>)]) -> String {
        let answer = decide(&self.person, &query(&self.client_id, changes), json!({})).await.ok();
        told(&answer).remove("code").expect("a code")
    }

    /// The exchange of a code with these changes.
    async fn exchange(&self, code: &str, changes: &[(&str, &str)]) -> Reply {
        self.exchange_at(&self.client, code, changes).await
    }

    async fn exchange_at(&self, client: &Client, code: &str, changes: &[(&str, &str)]) -> Reply {
        let mut form = BTreeMap::from([
            ("grant_type", "authorization_code"),
            ("client_id", self.client_id.as_str()),
            ("code", code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ]);
        form.extend(changes.iter().copied());
        client.form("/oauth/token", &form.into_iter().collect::<Vec<_>>()).await
    }

    /// An app that the person allowed.
    async fn app(&self) -> Tokens {
        self.app_with(&[]).await
    }

    async fn app_with(&self, changes: &[(&str, Option<&str>)]) -> Tokens {
        let code = self.code(changes).await;
        self.exchange(&code, &[]).await.ok().into()
    }

    async fn refresh(&self, token: &str, changes: &[(&str, &str)]) -> Reply {
        self.refresh_at(&self.client, token, changes).await
    }

    async fn refresh_at(&self, client: &Client, token: &str, changes: &[(&str, &str)]) -> Reply {
        let mut form = BTreeMap::from([
            ("grant_type", "refresh_token"),
            ("client_id", self.client_id.as_str()),
            ("refresh_token", token),
        ]);
        form.extend(changes.iter().copied());
        client.form("/oauth/token", &form.into_iter().collect::<Vec<_>>()).await
    }

    /// The status of a request with an access token.
    async fn status(&self, access: &str) -> u16 {
        self.client.with_token(access).get("/auth/status").await.status
    }
}

/// Panics unless a response is this error of an OAuth route.
#[track_caller]
fn expect_oauth_error(reply: &Reply, status: u16, error: &str) {
    assert_eq!((reply.status, &reply.json()["error"]), (status, &json!(error)), "{reply}");
}

/// Panics unless a code or refresh token granted nothing.
#[track_caller]
fn expect_invalid_grant(reply: &Reply) {
    expect_oauth_error(reply, 400, "invalid_grant");
}

/// The id and the secret of a token.
fn parts(token: &str) -> (&str, &str) {
    token[4..].split_once('.').expect("a dot")
}

/// Lets `seconds` pass for an app.
async fn pass(stack: &Stack, token: &str, seconds: f64) {
    let id = uuid::Uuid::parse_str(parts(token).0).expect("an id");
    for sql in [
        "UPDATE oauth_grants SET code_until = code_until - make_interval(secs => $2), code_used_at = code_used_at - make_interval(secs => $2),
                refreshed_at = refreshed_at - make_interval(secs => $2), ends_at = ends_at - make_interval(secs => $2) WHERE id = $1",
        "UPDATE tokens SET access_until = access_until - make_interval(secs => $2), previous_until = previous_until - make_interval(secs => $2),
                idle_until = idle_until - make_interval(secs => $2), expires_at = expires_at - make_interval(secs => $2) WHERE id = $1",
    ] {
        sqlx::query(sql).bind(id).bind(seconds).execute(stack.pool()).await.expect("lets time pass");
    }
}

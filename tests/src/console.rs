//! People who are signed in, as browsers send their requests (docs/reference/console.md).

use reqwest::Method;
use serde_json::{Value, json};

use crate::account::Account;
use crate::client::{API_ROOT, Call, Client, Reply};
use crate::stack::Stack;

/// The name of the session's cookie.
const COOKIE: &str = "__Host-canvas";

/// A person with a session.
#[derive(Clone)]
pub struct Person {
    /// The answer to signing in.
    pub signed_in: Value,
    /// `<id>.<secret>`.
    pub session: String,
    client: Client,
    origin: String,
}

impl Person {
    /// A request to `path` below `/console` with this session, without the headers of a write.
    pub fn request(&self, method: Method, path: &str) -> Call {
        let call = self.client.call(method, &format!("/console{path}"));
        call.header("cookie", &format!("{COOKIE}={}", self.session))
    }

    /// The request that a page of the console makes to `path` below `/console`.
    pub fn call(&self, method: Method, path: &str) -> Call {
        from_page(self.request(method, path), &self.origin)
    }

    /// `GET` below `/console`.
    pub fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    /// `POST` with a JSON body below `/console`.
    pub fn send(&self, path: &str, body: &Value) -> Call {
        self.call(Method::POST, path).body("application/json", body.to_string())
    }

    /// `PUT` with a JSON body below `/console`.
    pub fn put(&self, path: &str, body: &Value) -> Call {
        self.call(Method::PUT, path).body("application/json", body.to_string())
    }

    /// `DELETE` below `/console`.
    pub fn delete(&self, path: &str) -> Call {
        self.call(Method::DELETE, path)
    }

    /// The path of the contract's operation at `path`, below `/console`.
    pub fn api(path: &str) -> String {
        format!("{API_ROOT}{path}")
    }

    /// The same session, used at another gateway.
    pub fn at(&self, stack: &Stack, gateway: usize) -> Self {
        Self { client: stack.anonymous_at(gateway), ..self.clone() }
    }
}

/// The request as a page of `origin` makes it.
fn from_page(call: Call, origin: &str) -> Call {
    call.header("origin", origin).header("x-canvas-console", "1")
}

impl Stack {
    /// A new sign-in link of `account`: its secret.
    pub async fn signin_link(&self, account: &str) -> String {
        let made = self.admin(&["admin", "session", "link", "--account", account]).await.expect_success();
        let url = made["url"].as_str().expect("a URL");
        let (page, secret) = url.split_once('#').expect("the secret is in the fragment");
        assert_eq!(page, format!("{}/signin", self.origin(0)));
        secret.to_owned()
    }

    /// The request that the sign-in page makes.
    pub fn signing_in(&self, body: &Value) -> Call {
        self.sign_in_without_body().body("application/json", body.to_string())
    }

    /// [`Self::signing_in`], before it has a body.
    pub fn sign_in_without_body(&self) -> Call {
        from_page(self.anonymous().post("/console/session"), &self.origin(0))
    }

    /// Signs a person in by a link.
    pub async fn person(&self, account: &Account) -> Person {
        let link = self.signin_link(&account.uid).await;
        self.signed_in(&json!({ "link": link })).await
    }

    /// The person with this session.
    pub fn person_of(&self, session: &str) -> Person {
        let (session, client, origin) = (session.to_owned(), self.anonymous(), self.origin(0));
        Person { signed_in: Value::Null, session, client, origin }
    }

    /// Signs a person in with `body`.
    pub async fn signed_in(&self, body: &Value) -> Person {
        let reply = self.signing_in(body).await.expect(201);
        Person {
            session: session_of(&reply),
            signed_in: reply.json(),
            client: self.anonymous(),
            origin: self.origin(0),
        }
    }
}

/// The session that a response sets. Panics unless the cookie is one that only this service's own pages send.
fn session_of(reply: &Reply) -> String {
    let cookie = reply.header("set-cookie").expect("sets a cookie");
    let mut parts = cookie.split("; ");
    let value = parts.next().and_then(|pair| pair.strip_prefix(COOKIE)?.strip_prefix('=')).expect("the session");
    let attributes: Vec<&str> = parts.collect();
    assert_eq!(attributes, ["Path=/", "Secure", "HttpOnly", "SameSite=Strict", "Max-Age=2592000"]);
    value.to_owned()
}

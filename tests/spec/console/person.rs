//! A person who is signed in, with an agent token of the same account.

use e2e::api::text;
use e2e::{Account, Call, Client, Reply, Stack, User};
use reqwest::Method;
use serde_json::{Value, json};

/// A person with a session.
pub struct Person {
    /// An agent token of the account with all scopes.
    pub user: User,
    /// The email of the account.
    pub email: String,
    /// The cookie of the session, `__Host-canvas=<id>.<secret>`.
    pub cookie: String,
    origin: String,
    client: Client,
}

impl Person {
    /// A new account whose person signed in by a link.
    pub async fn new(stack: &Stack) -> Self {
        Self::of(stack, &stack.account().await).await
    }

    /// The person of an account, signed in by a link.
    pub async fn of(stack: &Stack, account: &Account) -> Self {
        let user = stack.user_of(account, "all").await;
        let made = stack.admin(&["admin", "session", "link", "--account", &account.uid]).await.expect_success();
        let link = text(&made, "/url").split_once('#').expect("a fragment").1;
        Self::signed_in(stack, account, user, &json!({"link": link})).await
    }

    /// A new account that its token signed in.
    pub async fn narrow(stack: &Stack) -> Self {
        let account = stack.account().await;
        let user = stack.user_of(&account, "all").await;
        let credential = json!({"token": user.token});
        Self::signed_in(stack, &account, user, &credential).await
    }

    async fn signed_in(stack: &Stack, account: &Account, user: User, credential: &Value) -> Self {
        let (email, client, origin) = (account.email.clone(), stack.anonymous(), stack.origin(0));
        let mut person = Self { user, email, cookie: String::new(), origin, client };
        let reply = person.send(Method::POST, "/session", credential).await.expect(201);
        let set = reply.header("set-cookie").expect("a cookie");
        person.cookie = set.split(';').next().expect("a pair").to_owned();
        person
    }

    /// A request to a route below `/console` with this session, without the headers of a write.
    pub fn request(&self, method: Method, path: &str) -> Call {
        self.client.call(method, &format!("{}/console{path}", self.origin)).header("cookie", &self.cookie)
    }

    /// A request as the pages of the console send it.
    pub fn call(&self, method: Method, path: &str) -> Call {
        self.request(method, path).header("origin", &self.origin).header("x-canvas-console", "1")
    }

    /// The same with a body.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Reply {
        self.call(method, path).body("application/json", body.to_string()).await
    }

    /// `GET`.
    pub async fn get(&self, path: &str) -> Reply {
        self.call(Method::GET, path).await
    }

    /// `POST` with a body.
    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(Method::POST, path, &body).await
    }

    /// `DELETE` without a body.
    pub async fn delete(&self, path: &str) -> Reply {
        self.call(Method::DELETE, path).await
    }

    /// All entries of a list, read in pages of two.
    pub async fn pages(&self, path: &str, entries: &str) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}?limit=2{cursor}")).await.ok();
            let some = page[entries].as_array().expect("a list");
            assert!(some.len() <= 2 && page["page"]["limit"] == 2, "{page}");
            all.extend(some.iter().cloned());
            let Some(next) = page["page"]["nextCursor"].as_str() else {
                assert_eq!(page["page"]["hasMore"], false);
                return all;
            };
            assert_eq!(page["page"]["hasMore"], true);
            cursor = format!("&cursor={next}");
        }
    }

    /// Path of a canvas of this person in the console.
    pub fn canvas_path(&self, canvas: &str) -> String {
        format!("/canvases/{}/{canvas}", self.user.uid)
    }
}

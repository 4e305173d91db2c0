//! Accounts and tokens, created with the admin subcommands as an operator creates them.

use std::ops::Deref;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use crate::process::command;
use crate::{Client, Stack};

/// The outcome of an admin command.
#[derive(Debug)]
pub struct Admin {
    arguments: String,
    /// The exit status.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Admin {
    /// The one JSON object on stdout. Panics unless the command succeeded and printed nothing else.
    #[track_caller]
    pub fn expect_success(self) -> Value {
        assert_eq!(self.code, 0, "{}: {}", self.arguments, self.stderr);
        assert_eq!(self.stderr, "", "{}", self.arguments);
        assert_eq!(self.stdout.lines().count(), 1, "{}: {}", self.arguments, self.stdout);
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{}: {error}: {}", self.arguments, self.stdout))
    }

    /// Panics unless a rule rejected the command: exit status 1, nothing on stdout, and one line on stderr, which is returned.
    #[track_caller]
    pub fn expect_refusal(self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (1, ""), "{}: {}", self.arguments, self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}: {}", self.arguments, self.stderr);
        self.stderr
    }

    /// Panics unless the command line was invalid: exit status 2, one line on stderr, and nothing on stdout.
    #[track_caller]
    pub fn expect_misuse(self) {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{}: {}", self.arguments, self.stderr);
        assert_eq!(self.stderr.trim_end().lines().count(), 1, "{}: {}", self.arguments, self.stderr);
    }
}

#[derive(Clone, Debug)]
pub struct Account {
    /// The uid of the account.
    pub uid: String,
    /// The email address of the account.
    pub email: String,
}

/// A token of an account, and a client that sends it.
#[derive(Clone)]
pub struct User {
    /// The uid of the account.
    pub uid: String,
    /// The id of the token.
    pub token_id: String,
    /// The whole token, including its secret.
    pub token: String,
    client: Client,
}

impl Deref for User {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

impl User {
    /// The same token, used at another gateway.
    pub fn at(&self, stack: &Stack, gateway: usize) -> Self {
        Self { client: stack.anonymous_at(gateway).with_token(&self.token), ..self.clone() }
    }
}

impl Stack {
    /// Runs `canvas-gateway` with these arguments.
    pub async fn admin(&self, arguments: &[&str]) -> Admin {
        self.admin_with_input(arguments, "").await
    }

    /// Runs it with a text on standard input.
    pub async fn admin_with_input(&self, arguments: &[&str], input: &str) -> Admin {
        self.admin_in(arguments, input, &[]).await
    }

    /// Runs it with a text on standard input and additional variables.
    pub async fn admin_in(&self, arguments: &[&str], input: &str, env: &[(&str, &str)]) -> Admin {
        let mut command = tokio::process::Command::from(command("canvas-gateway"));
        let unused: &[&str] = match arguments {
            ["serve"] => &[],
            ["migrate"] => &["CANVAS_REDIS_URL", "CANVAS_AMQP_URL", "CANVAS_BLOB_URL"],
            ["admin", "asset" | "assets", "clean", ..] => &["CANVAS_AMQP_URL"],
            _ => &["CANVAS_AMQP_URL", "CANVAS_BLOB_URL"],
        };
        let variables = self.env_of((arguments != ["migrate"]).then_some("gateway"));
        let used = variables.iter().filter(|(name, _)| !unused.contains(&name.as_str()));
        command.args(arguments).envs(used.map(|(name, value)| (name, value))).envs(env.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().expect("starts canvas-gateway");
        // Most commands do not read their input and can exit before it is written.
        let _ = process.stdin.take().expect("a pipe").write_all(input.as_bytes()).await;
        let output = process.wait_with_output().await.expect("runs canvas-gateway");
        Admin {
            arguments: arguments.join(" "),
            code: output.status.code().expect("was not killed"),
            stdout: String::from_utf8(output.stdout).expect("prints UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("prints UTF-8"),
        }
    }

    /// Creates a new account.
    pub async fn account(&self) -> Account {
        let uid = format!("u-{}", Uuid::new_v4().simple());
        let email = format!("{uid}@example.com");
        self.admin(&["admin", "account", "create", "--email", &email, "--uid", &uid]).await.expect_success();
        Account { uid, email }
    }

    /// Creates a token of `account`. `scopes` is a comma separated list, or `all`.
    pub async fn user_of(&self, account: &Account, scopes: &str) -> User {
        self.user_by(account, scopes, "api").await
    }

    /// Creates a token of `account` for a surface.
    pub async fn user_by(&self, account: &Account, scopes: &str, surface: &str) -> User {
        let create = ["admin", "token", "create", "--label", "e2e", "--account", &account.uid];
        let made = self.admin(&[&create[..], &["--scopes", scopes, "--surface", surface]].concat()).await;
        let made = made.expect_success();
        let token = made["token"].as_str().expect("a token").to_owned();
        User {
            uid: account.uid.clone(),
            token_id: made["id"].as_str().expect("an id").to_owned(),
            client: self.anonymous().with_token(&token),
            token,
        }
    }

    /// Creates an account and a token with all scopes.
    pub async fn user(&self) -> User {
        self.user_with("all").await
    }

    /// Creates an account and a token with these scopes.
    pub async fn user_with(&self, scopes: &str) -> User {
        self.user_of(&self.account().await, scopes).await
    }

    /// Grants credits to an account and returns the new balance.
    pub async fn grant(&self, account: &str, amount: i64) -> i64 {
        let amount = amount.to_string();
        let granted = self.admin(&["admin", "credits", "grant", "--account", account, "--amount", &amount]).await;
        granted.expect_success()["creditBalance"].as_i64().expect("a balance")
    }

    /// Saves a connection of an account to a provider with a placeholder key and returns its id.
    pub async fn connect(&self, account: &str, provider: &str, name: &str) -> String {
        self.save_connection(account, provider, &["--name", name], "sk-0123456789abcdef").await
    }

    /// Saves a connection to the server at `url` with this key and returns its id.
    pub async fn connect_to(&self, account: &str, provider: &str, url: &str, key: &str) -> String {
        self.save_connection(account, provider, &["--name", "mine", "--base-url", url], key).await
    }

    async fn save_connection(&self, account: &str, provider: &str, more: &[&str], key: &str) -> String {
        let create = ["admin", "connection", "create", "--account", account, "--provider", provider, "--api-key-stdin"];
        let saved = self.admin_with_input(&[&create[..], more].concat(), key).await;
        saved.expect_success()["id"].as_str().expect("an id").to_owned()
    }

    /// Shares a canvas of `owner`; `role` is `viewer`, `editor` or `none`.
    pub async fn share(&self, owner: &User, canvas: &str, with: &str, role: &str) {
        let handle = format!("canvas:{}:{canvas}", owner.uid);
        self.admin(&["admin", "share", "--canvas", &handle, "--with", with, "--role", role]).await.expect_success();
    }
}

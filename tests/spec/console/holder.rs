//! An account with a person who is signed in and an agent token.

use std::ops::Deref;

use e2e::{Account, Person, Stack, User};
use serde_json::{Value, json};

/// The holder of an account. Derefs to the person's session.
pub struct Holder {
    /// An agent token of the account with all scopes.
    pub user: User,
    /// The email of the account.
    pub email: String,
    person: Person,
}

impl Deref for Holder {
    type Target = Person;
    fn deref(&self) -> &Person {
        &self.person
    }
}

impl Holder {
    /// A new account whose person signed in by a link.
    pub async fn new(stack: &Stack) -> Self {
        Self::with_account(stack, &stack.account().await).await
    }

    /// The holder of an account, signed in by a link.
    pub async fn with_account(stack: &Stack, account: &Account) -> Self {
        let (user, person) = (stack.user_of(account, "all").await, stack.person(account).await);
        Self { user, email: account.email.clone(), person }
    }

    /// A new account that its token signed in.
    pub async fn narrow(stack: &Stack) -> Self {
        let account = stack.account().await;
        let user = stack.user_of(&account, "all").await;
        let person = stack.signed_in(&json!({"token": user.token})).await;
        Self { user, email: account.email, person }
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

    /// Path of a canvas of this account in the console.
    pub fn canvas_path(&self, canvas: &str) -> String {
        format!("/canvases/{}/{canvas}", self.user.uid)
    }
}

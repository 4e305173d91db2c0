//! Credential lookups, batched over concurrent requests.
//!
//! Every request begins with the same query, for the account of the token and for the canvas in the path. The result must not be
//! cached, because a revocation takes effect with the next request. Single lookups would therefore be most of the load of a busy
//! gateway on PostgreSQL. Instead, requests that arrive while a lookup is running wait for its end and are then looked up together
//! in one statement, which costs little more than a single lookup. A request that arrives alone is looked up at once. Every result
//! comes from a statement that began after its request had arrived.

use db::PgPool;
use db::accounts::{Authenticated, Question};
use domain::id::CanvasRef;
use taskqueue::{BatchError, Batcher};
use uuid::Uuid;

use crate::problem::{Problem, Result};

/// Looks up credentials in batches.
pub struct Credentials {
    questions: Batcher<Question, db::Result<Option<Authenticated>>>,
}

impl Credentials {
    /// The lookup, over connections of its own to the database of `pool`, and its background task, which the caller must run. The
    /// task ends when the lookup is dropped. `are_confirmed` is that of [`db::accounts::authenticate`].
    pub fn new(pool: &PgPool, are_confirmed: bool) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let pool = db::pool::batch_pool(pool);
        let (questions, worker) = Batcher::new(move |questions: Vec<Question>| {
            let pool = pool.clone();
            async move { db::accounts::authenticate(&mut *db::pool::acquire(&pool).await?, &questions, are_confirmed).await }
        });
        (Self { questions }, worker)
    }

    /// The token, and the canvas of the request as the token's account may see it.
    #[tracing::instrument(skip_all, name = "db.token.authenticate")]
    pub async fn look_up(&self, token: Uuid, canvas: Option<&CanvasRef>) -> Result<Option<Authenticated>> {
        let question = Question { token, canvas: canvas.cloned() };
        let answer = match self.questions.apply(question.clone()).await {
            // Nothing has been written yet: after a restart of the database the lookup is repeated, so that the request does not fail.
            Err(BatchError::Database(error)) if error.is_connection_lost() => self.questions.apply(question).await,
            answer => answer,
        };
        match answer {
            Ok(found) => Ok(found?),
            Err(BatchError::Database(error)) if !error.is_outage() => Err(Problem::internal(error)),
            Err(error) => Err(Problem::Unavailable(error.into(), Some(1))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use db::tokens::NewToken;
    use domain::account::{Scope, Scopes, Surface, TokenKind};
    use domain::id::AccountUid;
    use testkit::TestDatabase;

    use super::*;

    const ACCOUNTS: usize = 3;
    const REQUESTS: usize = 300;

    /// The background task runs until the test ends.
    fn credentials(pool: PgPool) -> Arc<Credentials> {
        let (credentials, worker) = Credentials::new(&pool, true);
        tokio::spawn(worker);
        Arc::new(credentials)
    }

    /// A database with a few accounts, each with one token.
    async fn database() -> (TestDatabase, Vec<(AccountUid, Uuid)>) {
        let database = TestDatabase::new().await;
        let mut connection = db::pool::acquire(database.pool()).await.expect("connects");
        let mut tokens = Vec::new();
        for number in 0..ACCOUNTS {
            let account = AccountUid::parse(&format!("account-{number}")).expect("valid");
            db::accounts::create(&mut connection, &account, &format!("{account}@example.com")).await.expect("creates");
            let token = NewToken {
                id: Uuid::now_v7(),
                account: &account,
                label: "test",
                scopes: Scopes::from_slice(&[Scope::CanvasRead]),
                surface: Surface::Api,
                secret_hash: b"hash",
                expires_days: None,
            };
            db::tokens::create(&mut connection, &token).await.expect("creates");
            tokens.push((account.clone(), token.id));
        }
        (database, tokens)
    }

    #[tokio::test]
    async fn of_many_requests_at_once_each_gets_its_own_answer() {
        let (database, tokens) = database().await;
        let credentials = credentials(database.pool().clone());
        let asked: Vec<_> = (0..REQUESTS)
            .map(|number| {
                let (credentials, expected) = (credentials.clone(), tokens.get(number % (ACCOUNTS + 1)).cloned());
                let token = expected.as_ref().map_or(Uuid::nil(), |(_, token)| *token);
                let found = async move { credentials.look_up(token, None).await.expect("answers") };
                (tokio::spawn(found), expected)
            })
            .collect();
        for (asked, expected) in asked {
            let found = asked.await.expect("ends").map(|(credential, _)| (credential.account, credential.token));
            assert_eq!(found, expected);
        }
    }

    #[tokio::test]
    async fn who_has_gone_keeps_nobody_from_an_answer() {
        let (database, tokens) = database().await;
        let credentials = credentials(database.pool().clone());
        let look_up = |token: Uuid| {
            let credentials = credentials.clone();
            async move { credentials.look_up(token, None).await }
        };
        let gone: Vec<_> = (0..REQUESTS).map(|_| tokio::spawn(look_up(tokens[0].1))).collect();
        tokio::task::yield_now().await;
        gone.iter().for_each(tokio::task::JoinHandle::abort);
        assert!(look_up(tokens[1].1).await.expect("answers").is_some());
    }

    #[tokio::test]
    async fn a_revocation_is_in_the_next_answer() {
        let (database, tokens) = database().await;
        let credentials = credentials(database.pool().clone());
        let token = tokens[0].1;
        let is_valid = async || credentials.look_up(token, None).await.expect("answers").expect("is there").0.valid;
        assert!(is_valid().await);
        let mut connection = db::pool::acquire(database.pool()).await.expect("connects");
        db::tokens::revoke(&mut connection, TokenKind::Agent, token, None).await.expect("revokes");
        assert!(!is_valid().await);
    }

    #[tokio::test]
    async fn a_database_that_is_out_of_reach_is_reported_to_everybody_who_waits() {
        let pool = db::pool::connect("postgres://nobody@127.0.0.1:1/none", "test", 1, None).expect("a URL");
        let credentials = credentials(pool);
        let asked = [credentials.look_up(Uuid::nil(), None), credentials.look_up(Uuid::nil(), None)];
        for answer in futures_util::future::join_all(asked).await {
            assert!(matches!(answer, Err(Problem::Unavailable(..))));
        }
    }
}

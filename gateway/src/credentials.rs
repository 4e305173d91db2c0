//! Who asks, looked up for many requests at once.
//!
//! Every request begins with the same question: whose token is this, and what is the canvas that the path names? Nothing of the
//! answer may be kept, for a revocation takes effect with the very next request (decisions 2.2), so a busy gateway would ask
//! Postgres little else. Therefore requests that come while questions are under way wait for their end and are asked about in
//! one statement, which costs little more than one question; a request that comes alone is asked about at once. Each answer is
//! from a statement that began after its request had come.

use std::sync::{Arc, Mutex, PoisonError};

use db::PgPool;
use db::accounts::{Authenticated, Question};
use domain::id::CanvasRef;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use uuid::Uuid;

use crate::problem::{Problem, Result};

/// Statements under way: one that is stuck does not stop the others.
const STATEMENTS: usize = 2;
/// Questions of one statement.
const QUESTIONS: usize = 64;

/// Looks credentials up; cheap to clone.
#[derive(Clone)]
pub struct Credentials(Arc<Shared>);

struct Shared {
    pool: PgPool,
    waiting: Mutex<Vec<Waiting>>,
    statements: Arc<Semaphore>,
}

type Answer = Result<Option<Authenticated>, Arc<db::Error>>;

struct Waiting {
    question: Question,
    answer: oneshot::Sender<Answer>,
}

impl Credentials {
    /// Over the pool that serves the requests.
    pub fn new(pool: PgPool) -> Self {
        let statements = Arc::new(Semaphore::new(STATEMENTS));
        Self(Arc::new(Shared { pool, waiting: Mutex::default(), statements }))
    }

    /// A token, and the canvas of its request as the token's account may see it.
    #[tracing::instrument(skip_all, name = "db.token.authenticate")]
    pub async fn look_up(&self, token: Uuid, canvas: Option<&CanvasRef>) -> Result<Option<Authenticated>> {
        let question = Question { token, canvas: canvas.cloned() };
        match self.ask(question.clone()).await {
            // Nothing was done yet: a restart of the database costs this request a second question, not an error.
            Some(Err(error)) if error.is_connection_lost() => self.ask(question).await,
            answer => answer,
        }
        .ok_or_else(|| Problem::internal("the look-up of a credential ended without an answer"))?
        .map_err(Problem::from)
    }

    /// Nothing is answered only where a statement's task has died.
    async fn ask(&self, question: Question) -> Option<Answer> {
        let (answer, answered) = oneshot::channel();
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(Waiting { question, answer });
        self.go_on();
        answered.await.ok()
    }

    /// Sees to it that what waits is asked: by a new task, unless as many as may are at it. Each looks again when it has ended.
    fn go_on(&self) {
        if let Ok(permit) = self.0.statements.clone().try_acquire_owned() {
            tokio::spawn(self.clone().ask_all(permit));
        }
    }

    async fn ask_all(self, permit: OwnedSemaphorePermit) {
        while let Some(waiting) = self.next() {
            let (questions, answers): (Vec<_>, Vec<_>) =
                waiting.into_iter().map(|waiting| (waiting.question, waiting.answer)).unzip();
            // Whoever has gone meanwhile needs no answer.
            match self.statement(&questions).await {
                Ok(found) => answers.into_iter().zip(found).for_each(|(answer, found)| {
                    drop(answer.send(found.map_err(Arc::new)));
                }),
                Err(error) => {
                    let error = Arc::new(error);
                    answers.into_iter().for_each(|answer| drop(answer.send(Err(error.clone()))));
                }
            }
        }
        drop(permit);
        // What came between the last look and the end of this task's turn.
        if !self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            self.go_on();
        }
    }

    /// The questions of the next statement.
    fn next(&self) -> Option<Vec<Waiting>> {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.len().min(QUESTIONS);
        (count > 0).then(|| waiting.drain(..count).collect())
    }

    async fn statement(&self, questions: &[Question]) -> db::Result<Vec<db::Result<Option<Authenticated>>>> {
        db::accounts::authenticate(&mut *db::pool::acquire(&self.0.pool).await?, questions).await
    }
}

#[cfg(test)]
mod tests {
    use db::accounts::NewToken;
    use domain::account::{Scope, Scopes, Surface};
    use domain::id::AccountUid;
    use testkit::TestDatabase;

    use super::*;

    const ACCOUNTS: usize = 3;

    /// A database of some accounts with a token each.
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
                scopes: Scopes::of(&[Scope::CanvasRead]),
                surface: Surface::Api,
                secret_hash: b"hash",
                expires_days: None,
            };
            db::accounts::create_token(&mut connection, &token).await.expect("creates");
            tokens.push((account.clone(), token.id));
        }
        (database, tokens)
    }

    #[tokio::test]
    async fn of_many_requests_at_once_each_gets_its_own_answer() {
        let (database, tokens) = database().await;
        let credentials = Credentials::new(database.pool().clone());
        let asked: Vec<_> = (0..5 * QUESTIONS)
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
        let credentials = Credentials::new(database.pool().clone());
        let look_up = |token: Uuid| {
            let credentials = credentials.clone();
            async move { credentials.look_up(token, None).await }
        };
        let gone: Vec<_> = (0..5 * QUESTIONS).map(|_| tokio::spawn(look_up(tokens[0].1))).collect();
        tokio::task::yield_now().await;
        gone.iter().for_each(tokio::task::JoinHandle::abort);
        assert!(look_up(tokens[1].1).await.expect("answers").is_some());
    }

    #[tokio::test]
    async fn a_revocation_is_in_the_next_answer() {
        let (database, tokens) = database().await;
        let credentials = Credentials::new(database.pool().clone());
        let token = tokens[0].1;
        let is_valid = async || credentials.look_up(token, None).await.expect("answers").expect("is there").0.valid;
        assert!(is_valid().await);
        let mut connection = db::pool::acquire(database.pool()).await.expect("connects");
        db::accounts::revoke_token(&mut connection, token).await.expect("revokes");
        assert!(!is_valid().await);
    }

    #[tokio::test]
    async fn a_database_that_is_out_of_reach_is_told_to_everybody_who_waits() {
        let pool = db::pool::connect("postgres://nobody@127.0.0.1:1/none", "test", 1).expect("a URL");
        let credentials = Credentials::new(pool);
        let asked = [credentials.look_up(Uuid::nil(), None), credentials.look_up(Uuid::nil(), None)];
        for answer in futures_util::future::join_all(asked).await {
            assert!(matches!(answer, Err(Problem::Unavailable(..))));
        }
    }
}

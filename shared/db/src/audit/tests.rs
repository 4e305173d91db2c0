use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use domain::account::{Scope, Surface};
use sqlx::AssertSqlSafe;
use testkit::TestDatabase;

use super::read::{After, Filter, page};
use super::seal::{Broken, Verification, all, verify};
use super::*;
use crate::Connection;

/// A stand-in for an HMAC: different messages have different ones.
fn mac(message: &[u8]) -> [u8; 32] {
    let mut mac = [0; 32];
    for (index, part) in mac.chunks_mut(8).enumerate() {
        let mut hasher = DefaultHasher::new();
        (index, message).hash(&mut hasher);
        part.copy_from_slice(&hasher.finish().to_be_bytes());
    }
    mac
}

struct Fixture {
    database: TestDatabase,
    me: AccountUid,
}

impl Fixture {
    async fn new() -> Self {
        let database = TestDatabase::new().await;
        sqlx::raw_sql("INSERT INTO accounts (uid, email, display_name) VALUES ('me', 'ana@example.com', 'Ana')")
            .execute(database.pool())
            .await
            .expect("inserts");
        Self { database, me: AccountUid::parse("me").expect("valid") }
    }

    async fn conn(&self) -> Connection {
        self.database.pool().acquire().await.expect("connects")
    }

    fn person(&self) -> Actor {
        let origin = Origin { request: Uuid::now_v7(), address: "192.0.2.1".into(), client: Some("Browser".into()) };
        Actor::session(self.me.clone(), Uuid::now_v7(), origin)
    }

    async fn credit(&self, amount: i64) {
        let event = Event::AccountCredit { amount, balance: amount };
        write(&mut *self.conn().await, &self.person(), Some(&self.me), &event).await.expect("writes");
    }

    /// Seals all rows, `count` of them.
    async fn seal(&self, count: usize) {
        let mut transaction = crate::pool::begin(self.database.pool()).await.expect("begins");
        let seals = all(&mut transaction, &mac).await.expect("seals");
        crate::pool::commit(transaction).await.expect("commits");
        assert_eq!(seals.iter().map(|seal| seal.rows).sum::<usize>(), count);
    }

    async fn verify(&self) -> Verification {
        verify(&mut *self.conn().await, &mac).await.expect("reads")
    }

    async fn first_broken(&self) -> Option<Broken> {
        self.verify().await.first_broken
    }

    async fn run(&self, sql: &str) -> Result<u64, sqlx::Error> {
        let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(self.database.pool()).await?;
        Ok(done.rows_affected())
    }

    /// Runs statements as who may switch off triggers.
    async fn forge(&self, sql: &str) {
        let forged = format!("SET session_replication_role = replica; {sql}; RESET session_replication_role");
        self.run(&forged).await.expect("forges");
    }
}

#[tokio::test]
async fn a_row_says_who_did_what_and_names_are_resolved_when_it_is_read() {
    let fixture = Fixture::new().await;
    let mut conn = fixture.conn().await;
    let token = Uuid::now_v7();
    let scopes = vec![Scope::CanvasRead, Scope::AssetRead];
    let event = Event::TokenCreated { token, scopes, surface: Surface::Api, expires_at: None };
    write(&mut conn, &fixture.person(), Some(&fixture.me), &event).await.expect("writes");
    write(&mut conn, &Actor::command("admin credits grant"), Some(&fixture.me), &Event::AccountEnabled {})
        .await
        .expect("writes");
    let read = page(&mut conn, &Filter::default(), None, 10).await.expect("reads");
    let [by_command, by_person] = &read[..] else { panic!("{read:?}") };
    assert_eq!((by_command.event.as_str(), by_command.via.as_str()), ("account.enabled", "command"));
    assert_eq!(by_command.via_id.as_deref(), Some("admin credits grant"));
    assert!(by_command.actor.is_none() && by_command.address.is_none() && by_command.details.is_empty());
    assert_eq!((by_person.event.as_str(), by_person.outcome.as_str()), ("token.created", "ok"));
    let details = serde_json::json!({ "token": token, "scopes": ["canvas:read", "asset:read"], "surface": "api" });
    assert_eq!(Value::Object(by_person.details.clone()), details);
    let actor = by_person.actor.as_ref().expect("is there");
    assert_eq!((actor.email.as_deref(), actor.display_name.as_deref()), (Some("ana@example.com"), Some("Ana")));
    assert_eq!(by_person.address.as_deref(), Some("192.0.2.1"));
    // A purge takes the names, the address and the client; the row stays as it is.
    fixture.seal(2).await;
    forget_account(&mut conn, &fixture.me).await.expect("deletes");
    fixture.run("UPDATE accounts SET email = 'purged:me', purged_at = now()").await.expect("purges");
    let read = page(&mut conn, &Filter::default(), None, 10).await.expect("reads");
    let actor = read[1].actor.as_ref().expect("is there");
    assert!(actor.uid == fixture.me && actor.email.is_none() && actor.display_name.is_none());
    assert!(read[1].address.is_none() && read[1].client.is_none());
    assert_eq!(fixture.first_broken().await, None);
}

#[tokio::test]
async fn filters_and_pages_are_of_the_newest_rows() {
    let fixture = Fixture::new().await;
    let mut conn = fixture.conn().await;
    for amount in 1..=3 {
        fixture.credit(amount).await;
    }
    let refused = Event::SignInRefused { by: "link", why: None };
    let nobody = Actor::nobody(Origin { request: Uuid::now_v7(), address: "192.0.2.2".into(), client: None });
    write(&mut conn, &nobody, None, &refused).await.expect("writes");
    let mut names = async |filter: Filter, after: Option<i64>, limit| {
        let read = page(&mut conn, &filter, after.map(After).as_ref(), limit).await.expect("reads");
        read.into_iter().map(|row| (row.id, row.event)).collect::<Vec<_>>()
    };
    let all = names(Filter::default(), None, 10).await;
    assert_eq!(all.len(), 4);
    assert_eq!(names(Filter::default(), Some(all[1].0), 1).await, all[2..3]);
    let event = |text: &str| Filter { event: Some(text.into()), ..Filter::default() };
    assert_eq!(names(event("signin."), None, 10).await, all[..1]);
    assert!(names(event("%"), None, 10).await.is_empty(), "it is no pattern");
    let of = |filter: Filter| Filter { actor: Some(fixture.me.clone()), ..filter };
    assert_eq!(names(of(Filter::default()), None, 10).await, all[1..]);
    assert_eq!(names(Filter { outcome: Some("refused"), ..Filter::default() }, None, 10).await, all[..1]);
}

#[tokio::test]
async fn the_database_refuses_changes() {
    let fixture = Fixture::new().await;
    fixture.credit(1).await;
    fixture.seal(1).await;
    for sql in [
        "UPDATE audit SET event = 'account.enabled'",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "UPDATE audit_seals SET rows = 0",
        "DELETE FROM audit_seals",
        "TRUNCATE audit_seals",
    ] {
        let error = fixture.run(sql).await.expect_err(sql);
        assert!(error.to_string().contains("append-only"), "{sql}: {error}");
    }
    assert_eq!(fixture.first_broken().await, None);
}

#[tokio::test]
async fn every_forgery_of_one_row_is_found() {
    let fixture = Fixture::new().await;
    for amount in 1..=10 {
        fixture.credit(amount).await;
        if amount % 3 == 0 {
            fixture.seal(3).await;
        }
    }
    fixture.seal(1).await;
    let before = fixture.verify().await;
    assert_eq!((before.rows, before.seals, before.first_broken), (10, 4, None));
    assert!(before.head.is_some());
    fixture.run("CREATE TABLE kept AS TABLE audit").await.expect("copies");
    let mut forgeries = Vec::new();
    for id in 1..=10 {
        for change in [
            "at = at + interval '1 ms'",
            "event = 'account.enabled'",
            "outcome = 'refused'",
            "actor_uid = 'you'",
            "actor_uid = NULL",
            "via = 'token'",
            "via_id = NULL",
            "account_uid = 'you'",
            "request_id = gen_random_uuid()",
            r#"details = details || '{"amount": 99}'"#,
            "origin = NULL",
        ] {
            forgeries.push((id, format!("UPDATE audit SET {change} WHERE id = {id}")));
        }
        forgeries.push((id, format!("DELETE FROM audit WHERE id = {id}")));
    }
    for (id, forgery) in forgeries {
        fixture.forge(&forgery).await;
        assert_eq!(fixture.first_broken().await, Some(Broken::Seal((id + 2) / 3)), "{forgery}");
        fixture.forge("DELETE FROM audit; INSERT INTO audit OVERRIDING SYSTEM VALUE SELECT * FROM kept").await;
    }
    assert_eq!(fixture.verify().await, before);
    fixture.forge("DELETE FROM audit_seals WHERE id = 2").await;
    assert_eq!(fixture.first_broken().await, Some(Broken::Seal(3)));
    // Its rows are now sealed by none.
    fixture.forge("DELETE FROM audit_seals; UPDATE audit SET at = at - interval '1 hour'").await;
    fixture.credit(11).await;
    fixture.seal(11).await;
    assert_eq!(fixture.first_broken().await, None, "a new chain over all rows");
}

#[tokio::test]
async fn a_row_that_was_inserted_with_an_old_time_is_found() {
    let fixture = Fixture::new().await;
    fixture.credit(1).await;
    fixture.seal(1).await;
    let insert = |minutes: i32| {
        format!(
            "INSERT INTO audit (at, event, outcome, via, details)
             VALUES (now() - interval '{minutes} minutes', 'account.enabled', 'ok', 'system', '{{}}')"
        )
    };
    fixture.run(&insert(9)).await.expect("inserts");
    fixture.seal(1).await;
    assert_eq!(fixture.first_broken().await, None, "so long a commit may take");
    fixture.run(&insert(11)).await.expect("inserts");
    fixture.seal(0).await;
    assert_eq!(fixture.first_broken().await, Some(Broken::Row(3)));
    assert_eq!(fixture.verify().await.rows, 3);
}

#[tokio::test]
async fn all_of_a_backlog_is_sealed_however_long_nobody_sealed() {
    let fixture = Fixture::new().await;
    fixture.credit(1).await;
    fixture.seal(1).await;
    fixture.forge("UPDATE audit_seals SET sealed_at = now() - interval '70 days'").await;
    // Of two months, more rows than one seal takes, and all of them older than ten minutes.
    for amount in 2..=1003 {
        fixture.credit(amount).await;
    }
    fixture.forge("UPDATE audit SET at = now() - interval '69 days' WHERE id = 2").await;
    fixture.forge("UPDATE audit SET at = now() - interval '1 hour' WHERE id > 2").await;
    fixture.seal(1002).await;
    let found = fixture.verify().await;
    assert_eq!((found.seals, found.first_broken), (4, None));
}

#[tokio::test]
async fn an_address_or_a_client_of_another_act_is_found() {
    for change in ["address = '192.0.2.2'", "client = NULL", "salt = gen_random_uuid()"] {
        let fixture = Fixture::new().await;
        fixture.credit(1).await;
        fixture.seal(1).await;
        fixture.forge(&format!("UPDATE audit_origins SET {change}")).await;
        assert_eq!(fixture.first_broken().await, Some(Broken::Seal(1)), "{change}");
    }
}

#[tokio::test]
async fn a_row_that_commits_late_is_in_a_later_seal() {
    let fixture = Fixture::new().await;
    let mut late = crate::pool::begin(fixture.database.pool()).await.expect("begins");
    write(&mut late, &Actor::system(), None, &Event::AccountEnabled {}).await.expect("writes");
    fixture.credit(1).await;
    fixture.seal(1).await;
    crate::pool::commit(late).await.expect("commits");
    fixture.seal(1).await;
    let ids: Vec<String> = sqlx::query_scalar("SELECT ids::text FROM audit_seals ORDER BY id")
        .fetch_all(fixture.database.pool())
        .await
        .expect("reads");
    assert_eq!(ids, ["{[2,3)}", "{[1,2)}"]);
    assert_eq!(fixture.first_broken().await, None);
}

#[tokio::test]
async fn whole_months_are_dropped_and_what_is_left_is_verified() {
    let fixture = Fixture::new().await;
    let mut conn = fixture.conn().await;
    for amount in 1..=4 {
        fixture.credit(amount).await;
    }
    fixture.forge("UPDATE audit SET at = at - interval '70 days' WHERE id <= 2").await;
    fixture.seal(4).await;
    assert_eq!(fixture.verify().await.seals, 2, "a seal is of one month");
    assert_eq!(seal::drop_months(&mut conn, &mac, 3650).await.expect("looks"), None);
    let before = seal::drop_months(&mut conn, &mac, 32).await.expect("drops").expect("there is one to drop");
    let again = seal::drop_months(&mut conn, &mac, 32).await.expect("drops");
    assert_eq!(again, Some(before), "it is said once");
    fixture.seal(1).await;
    assert_eq!(fixture.first_broken().await, None, "while rows are being deleted, too");
    assert_eq!(seal::sweep(&mut conn, before, 1).await.expect("deletes"), 1);
    assert_eq!(fixture.first_broken().await, None);
    assert_eq!(seal::sweep(&mut conn, before, 10).await.expect("deletes"), 1);
    let left = fixture.verify().await;
    assert_eq!((left.rows, left.seals, left.first_broken), (3, 3, None), "the last seal of a dropped month is kept");
    // A later seal is not one of a dropped month by another time.
    fixture.forge("UPDATE audit_seals SET at = at - interval '70 days' WHERE id = 2; UPDATE audit SET event = event || 'x' WHERE id = 3").await;
    assert_eq!(fixture.first_broken().await, Some(Broken::Seal(2)));
    let back = "UPDATE audit_seals SET at = at + interval '70 days' WHERE id = 2";
    fixture.forge(&format!("{back}; UPDATE audit SET event = rtrim(event, 'x') WHERE id = 3")).await;
    assert_eq!(fixture.first_broken().await, None);
    // Who cannot make the proof, drops nothing that is not missed.
    fixture
        .run(
            r#"INSERT INTO audit (event, outcome, via, details)
               VALUES ('audit.dropped', 'ok', 'system', '{"before": "2999-01-01T00:00:00.000Z", "proof": "00"}');
               DELETE FROM audit WHERE id = 3"#,
        )
        .await
        .expect("deletes");
    assert_eq!(fixture.first_broken().await, Some(Broken::Seal(2)));
}

#[tokio::test]
async fn addresses_are_deleted_earlier() {
    let fixture = Fixture::new().await;
    let mut conn = fixture.conn().await;
    fixture.credit(1).await;
    fixture.credit(2).await;
    fixture.run("UPDATE audit_origins SET at = now() - interval '90 days' WHERE audit_id = 1").await.expect("ages");
    assert_eq!(sweep_origins(&mut conn, 91, 10).await.expect("sweeps"), 0);
    assert_eq!(sweep_origins(&mut conn, 90, 10).await.expect("sweeps"), 1);
    let read = page(&mut conn, &Filter::default(), None, 10).await.expect("reads");
    let addresses: Vec<_> = read.into_iter().map(|row| row.address.is_some()).collect();
    assert_eq!(addresses, [true, false]);
}

#[tokio::test]
async fn refusals_of_a_minute_are_capped() {
    let fixture = Fixture::new().await;
    let refuse = async |address: &str| {
        let origin = Origin { request: Uuid::now_v7(), address: address.into(), client: None };
        let mut transaction = crate::pool::begin(fixture.database.pool()).await.expect("begins");
        let refused = Event::SignInRefused { by: "link", why: None };
        let done = write_refusal(&mut transaction, &Actor::nobody(origin), None, &refused).await.expect("writes");
        crate::pool::commit(transaction).await.expect("commits");
        done
    };
    let fill = async |address: &str, count: i64| {
        let sql = format!(
            "WITH rows AS (
                 INSERT INTO audit (at, event, outcome, via, details)
                 SELECT date_trunc('minute', clock_timestamp()) + interval '1 hour', 'signin.refused', 'refused', 'nobody', '{{}}'
                 FROM generate_series(1, {count}) RETURNING id, at)
             INSERT INTO audit_origins (audit_id, salt, address, at) SELECT id, gen_random_uuid(), '{address}', at FROM rows"
        );
        fixture.run(&sql).await.expect("inserts");
    };
    let is_capped = |done: Refused, all: bool| matches!(done, Refused::Capped { of_all, seconds } if of_all == all && seconds > 0.0);
    // Rows of a later minute count in this one, so that the test does not depend on the clock.
    fill("192.0.2.1", REFUSALS_OF_ADDRESS - 1).await;
    assert_eq!(refuse("192.0.2.1").await, Refused::Written);
    assert!(is_capped(refuse("192.0.2.1").await, false));
    assert_eq!(refuse("192.0.2.2").await, Refused::Written);
    fill("192.0.2.3", REFUSALS - REFUSALS_OF_ADDRESS - 2).await;
    assert_eq!(refuse("192.0.2.4").await, Refused::Written);
    assert!(is_capped(refuse("192.0.2.5").await, true));
}

#[test]
fn every_event_has_a_name_of_its_own_and_details_in_camel_case() {
    let names: BTreeSet<_> = Event::DESCRIBED.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), Event::DESCRIBED.len());
    let expires_at = domain::Timestamp::from(sqlx::types::chrono::DateTime::UNIX_EPOCH);
    let details = Event::LinkCreated { link: Uuid::nil(), expires_at }.details();
    let expected = serde_json::json!({ "link": Uuid::nil(), "expiresAt": "1970-01-01T00:00:00.000Z" });
    assert_eq!(Value::Object(details), expected);
    assert_eq!(Event::SignInRefused { by: "link", why: None }.outcome(), "refused");
}

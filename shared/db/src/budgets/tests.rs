//! Budgets, against the ledger and against a model.

use chrono::{DateTime, Datelike, Days, NaiveTime, Utc};
use domain::budget::{BudgetPeriod, BudgetUnit};
use domain::id::JobId;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use testkit::TestDatabase;
use tokio::runtime::Runtime;

use super::*;
use crate::ledger::{self, Funding, Payer, Unused};

fn budget(text: &str) -> Budget {
    text.parse().expect("a budget")
}

/// A database with an account, its token and its credits.
struct Fixture {
    database: TestDatabase,
    account: AccountUid,
    token: Uuid,
}

impl Fixture {
    async fn new(credits: i64) -> Self {
        let fixture = Self { database: TestDatabase::new().await, account: "me".parse_uid(), token: Uuid::now_v7() };
        fixture.add_account(&fixture.account, credits).await;
        // The ledger is changed where a test lets days pass.
        sqlx::query("ALTER TABLE ledger DISABLE TRIGGER USER").execute(fixture.database.pool()).await.expect("alters");
        fixture
    }

    async fn add_account(&self, account: &AccountUid, credits: i64) {
        let mut conn = self.conn().await;
        let email = format!("{}@example.com", account.as_str());
        crate::accounts::create(&mut conn, account, &email).await.expect("creates").expect("is new");
        ledger::grant(&mut conn, account, credits).await.expect("grants");
    }

    async fn conn(&self) -> crate::Connection {
        crate::pool::acquire(self.database.pool()).await.expect("connects")
    }

    fn payer(&self) -> Payer<'_> {
        Payer { account: &self.account, authority: self.token, owner: BudgetOwner::Token }
    }

    async fn set(&self, of_token: bool, budgets: &[&str]) {
        let budgets: Vec<Budget> = budgets.iter().map(|text| budget(text)).collect();
        let mut tx = crate::pool::begin(self.database.pool()).await.expect("begins");
        set(&mut tx, &self.account, of_token.then_some(self.token), &budgets).await.expect("sets");
        crate::pool::commit(tx).await.expect("commits");
    }

    async fn start(&self, amount: i64, outputs: i64) -> (Uuid, Funding) {
        let id = JobId::generate().0;
        (id, start(&self.database, self.payer(), &[(id, amount)], outputs).await)
    }

    /// The refusal of a start: unit, period, what is left; or `granted` or `balance`. A dry run is judged alike.
    async fn judged(&self, amount: i64, outputs: i64) -> String {
        let dry = ledger::judge(&mut *self.conn().await, self.payer(), amount, outputs).await.expect("judges");
        let (_, funding) = self.start(amount, outputs).await;
        assert_eq!(funding, dry, "a dry run and its start");
        match funding {
            Funding::Granted => "granted".into(),
            Funding::OverBalance => "balance".into(),
            Funding::OverBudget(state) => format!("{} {} left of {}", state.of, state.left, state.in_words()),
        }
    }

    async fn give_back(&self, id: Uuid, amount: i64) {
        give_back(&self.database, &self.account, id, amount).await;
    }

    /// What is spent of each budget, the account's first.
    async fn spent(&self) -> Vec<i64> {
        let list = list(&mut *self.conn().await, &self.account, &[self.token], BudgetOwner::Token).await;
        list.expect("lists").into_iter().map(|(_, budget)| budget.spent).collect()
    }
}

/// Text as an id.
trait ParseUid {
    fn parse_uid(self) -> AccountUid;
}

impl ParseUid for &str {
    fn parse_uid(self) -> AccountUid {
        AccountUid::from_stored(self.to_owned())
    }
}

/// Starts as a command does: behind the lock on the account, and without effect unless the start is granted.
async fn start(database: &TestDatabase, payer: Payer<'_>, works: &[(Uuid, i64)], outputs: i64) -> Funding {
    let mut tx = crate::pool::begin(database.pool()).await.expect("begins");
    lock(&mut tx, payer.account).await.expect("locks");
    let funding = ledger::reserve(&mut tx, payer, works, outputs).await.expect("answers");
    // Also of a refused start: it has written nothing.
    crate::pool::commit(tx).await.expect("commits");
    funding
}

async fn give_back(database: &TestDatabase, account: &AccountUid, id: Uuid, amount: i64) {
    let mut tx = crate::pool::begin(database.pool()).await.expect("begins");
    lock(&mut tx, account).await.expect("locks");
    let unused = Unused { id, reserved_under: id, amount, orphans: 0 };
    ledger::give_back(&mut tx, account, unused).await.expect("returns");
    crate::pool::commit(tx).await.expect("commits");
}

/// Lets days pass: everything that is stored is as much older.
async fn pass(database: &TestDatabase, days: i32) {
    for statement in [
        "UPDATE budgets SET window_from = window_from - make_interval(days => $1)",
        "UPDATE ledger SET created_at = created_at - make_interval(days => $1)",
    ] {
        sqlx::query(statement).bind(days).execute(database.pool()).await.expect("ages");
    }
}

#[tokio::test]
async fn a_start_is_admitted_up_to_the_maximum_of_every_budget() {
    let fixture = Fixture::new(100).await;
    fixture.set(true, &["credits:day:10", "outputs:month:4"]).await;
    fixture.set(false, &["credits:total:12"]).await;
    assert_eq!(fixture.judged(11, 1).await, "token 10 left of 10 credits a day");
    assert_eq!(fixture.judged(9, 3).await, "granted");
    assert_eq!(fixture.judged(2, 1).await, "token 1 left of 10 credits a day");
    assert_eq!(fixture.judged(0, 2).await, "token 1 left of 4 outputs a month");
    assert_eq!(fixture.judged(1, 1).await, "granted");
    assert_eq!(fixture.judged(1, 0).await, "token 0 left of 10 credits a day", "the tightest of two");
    assert_eq!(fixture.judged(0, 1).await, "token 0 left of 4 outputs a month");
    assert_eq!(fixture.judged(0, 0).await, "granted", "an Action");
    assert_eq!(fixture.spent().await, [10, 10, 4]);
    fixture.set(true, &[]).await;
    assert_eq!(fixture.judged(3, 9).await, "account 2 left of 12 credits in total");
    assert_eq!(fixture.judged(2, 9).await, "granted");
    fixture.set(false, &["credits:total:9007199254740991"]).await;
    assert_eq!(
        fixture.judged(i64::MAX, i64::MAX).await,
        "account 9007199254740979 left of 9007199254740991 credits in total"
    );
    assert_eq!(fixture.judged(89, 0).await, "balance");
    assert_eq!(fixture.judged(88, 0).await, "granted");
}

#[tokio::test]
async fn budgets_of_another_token_or_account_do_not_concern_a_start() {
    let fixture = Fixture::new(100).await;
    fixture.set(true, &["credits:day:1"]).await;
    let (you, other) = ("you".parse_uid(), Uuid::now_v7());
    fixture.add_account(&you, 100).await;
    for (account, authority) in [(&you, fixture.token), (&fixture.account, other)] {
        let payer = Payer { account, authority, owner: BudgetOwner::Token };
        assert_eq!(start(&fixture.database, payer, &[(other, 5)], 1).await, Funding::Granted);
    }
    assert_eq!(fixture.judged(2, 0).await, "token 1 left of 1 credit a day");
}

#[tokio::test]
async fn a_budget_counts_from_when_it_is_set_and_keeps_what_it_counted() {
    let fixture = Fixture::new(100).await;
    let (before, _) = fixture.start(7, 1).await;
    fixture.set(true, &["credits:day:10", "outputs:day:5"]).await;
    assert_eq!(fixture.spent().await, [0, 0]);
    fixture.give_back(before, 7).await;
    assert_eq!(fixture.spent().await, [0, 0], "it had not counted them");
    let (running, _) = fixture.start(8, 3).await;
    fixture.set(true, &["credits:day:5", "credits:month:9"]).await;
    assert_eq!(fixture.spent().await, [8, 0], "a lowered maximum, and another period");
    assert_eq!(fixture.judged(1, 0).await, "token 0 left of 5 credits a day");
    assert_eq!(fixture.judged(0, 1).await, "granted");
    fixture.give_back(running, 5).await;
    assert_eq!(fixture.spent().await, [3, 0], "the later budget has not counted what returns");
    assert_eq!(fixture.judged(2, 0).await, "granted");
}

#[tokio::test]
async fn what_returns_in_a_later_window_gives_nothing_back() {
    let fixture = Fixture::new(100).await;
    fixture.set(true, &["credits:day:10", "credits:month:1000", "credits:total:20"]).await;
    let (early, _) = fixture.start(10, 1).await;
    fixture.give_back(early, 3).await;
    assert_eq!(fixture.spent().await, [7, 7, 7]);
    // A day and a month are over.
    pass(&fixture.database, 31).await;
    assert_eq!(fixture.spent().await, [0, 0, 7]);
    fixture.give_back(early, 2).await;
    assert_eq!(fixture.spent().await, [0, 0, 5]);
    assert_eq!(fixture.judged(10, 0).await, "granted");
    fixture.give_back(early, 5).await;
    assert_eq!(fixture.spent().await, [10, 10, 10], "the day has counted the later start alone");
    assert_eq!(fixture.judged(1, 0).await, "token 0 left of 10 credits a day");
}

#[tokio::test]
async fn a_reservation_of_an_earlier_release_gives_nothing_back() {
    let fixture = Fixture::new(100).await;
    fixture.set(false, &["credits:total:50"]).await;
    let (id, _) = fixture.start(10, 0).await;
    sqlx::query("UPDATE ledger SET authority = NULL").execute(fixture.database.pool()).await.expect("updates");
    fixture.give_back(id, 10).await;
    assert_eq!(fixture.spent().await, [10]);
}

#[tokio::test]
async fn concurrent_starts_pass_no_budget() {
    let fixture = Fixture::new(1000).await;
    fixture.set(true, &["credits:day:37"]).await;
    fixture.set(false, &["outputs:total:30"]).await;
    let fixture = &fixture;
    let starts = (0..40_i64).map(|n| async move {
        let (id, funding) = fixture.start(1 + n % 5, 1).await;
        if funding != Funding::Granted {
            return (0, 0);
        }
        if n % 3 == 0 {
            fixture.give_back(id, 1).await;
        }
        (1 + n % 5 - i64::from(n % 3 == 0), 1)
    });
    let granted = futures_util::future::join_all(starts).await;
    let sum = granted.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(fixture.spent().await, [sum.1, sum.0]);
    assert!(sum.0 <= 37 && sum.1 <= 30, "{sum:?}");
    let books: i64 = sqlx::query_scalar("SELECT -sum(amount)::bigint FROM ledger WHERE authority = $1")
        .bind(fixture.token)
        .fetch_one(fixture.database.pool())
        .await
        .expect("sums");
    assert_eq!(books, sum.0);
}

#[tokio::test]
async fn the_hash_of_a_token_with_budgets_and_of_its_sessions_is_marked_once() {
    let fixture = Fixture::new(0).await;
    let mut conn = fixture.conn().await;
    let scopes = domain::account::Scopes::from_slice(&[domain::account::Scope::CanvasRead]);
    let token = |id, hash| crate::tokens::NewToken {
        id,
        account: &fixture.account,
        label: "t",
        scopes,
        surface: domain::account::Surface::Api,
        secret_hash: hash,
        expires_days: None,
    };
    let other = Uuid::now_v7();
    crate::tokens::create(&mut conn, &token(fixture.token, &[7; 32])).await.expect("creates");
    crate::tokens::create(&mut conn, &token(other, &[8; 32])).await.expect("creates");
    let sign_in = async |parent| {
        let session = crate::sessions::NewSession {
            id: Uuid::now_v7(),
            account: &fixture.account,
            label: "s",
            scopes,
            secret_hash: &[9; 32],
            parent: Some(parent),
            client: None,
        };
        crate::sessions::create(&mut *fixture.conn().await, &session).await.expect("creates");
    };
    let hashes = async || {
        let hashes = "SELECT encode(secret_hash, 'hex') FROM tokens ORDER BY created_at, id";
        let hashes: Vec<String> = sqlx::query_scalar(hashes).fetch_all(fixture.database.pool()).await.expect("reads");
        hashes.into_iter().map(|hash| hash[..4].to_owned()).collect::<Vec<_>>()
    };
    sign_in(fixture.token).await;
    assert_eq!(hashes().await, ["0707", "0808", "0909"]);
    for budgets in [&["credits:day:1"][..], &["credits:day:2"], &[]] {
        fixture.set(true, budgets).await;
        assert_eq!(hashes().await, ["0107", "0808", "0109"], "{budgets:?}");
    }
    sign_in(fixture.token).await;
    sign_in(other).await;
    assert_eq!(hashes().await, ["0107", "0808", "0109", "0109", "0909"]);
}

/// A step of the property test. Indexes are taken modulo what is there.
#[derive(Clone, Debug)]
enum Step {
    /// Of one of two tokens: the amounts of its jobs, and its outputs.
    Start { token: usize, amounts: Vec<i64>, outputs: i64 },
    /// A part of what is left of a job returns; what is charged stays.
    Return { job: usize, percent: i64 },
    /// The budgets of a token, or of the account.
    Set { owner: usize, budgets: Vec<(BudgetUnit, BudgetPeriod, i64)> },
    /// Days pass.
    Pass { days: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let unit = prop::sample::select(BudgetUnit::ALL);
    let period = prop::sample::select(BudgetPeriod::ALL);
    let budgets = prop::collection::vec((unit, period, 0..40_i64), 0..4);
    let step = prop_oneof![
        6 => (0..2_usize, prop::collection::vec(0..8_i64, 1..4), 0..5_i64)
            .prop_map(|(token, amounts, outputs)| Step::Start { token, amounts, outputs }),
        3 => (any::<prop::sample::Index>(), 0..=100_i64)
            .prop_map(|(job, percent)| Step::Return { job: job.index(1000), percent }),
        2 => (0..3_usize, budgets).prop_map(|(owner, budgets)| Step::Set { owner, budgets }),
        1 => prop::sample::select(vec![1_u8, 1, 31]).prop_map(|days| Step::Pass { days }),
    ];
    prop::collection::vec(step, 1..40)
}

/// The rules of budgets, without a database.
#[derive(Default)]
struct Model {
    balance: i64,
    /// Owner (2: the account), budget, what it counts since when.
    budgets: Vec<(usize, Budget, i64, DateTime<Utc>)>,
    /// Id, token, what is left, and when it was reserved.
    jobs: Vec<(Uuid, usize, i64, DateTime<Utc>)>,
}

fn begin_of(period: BudgetPeriod, now: DateTime<Utc>) -> DateTime<Utc> {
    let day = now.date_naive();
    let day = match period {
        BudgetPeriod::Day => day,
        BudgetPeriod::Month => day.with_day(1).expect("a first day"),
        BudgetPeriod::Total => return DateTime::<Utc>::MIN_UTC,
    };
    day.and_time(NaiveTime::MIN).and_utc()
}

impl Model {
    fn roll(&mut self, now: DateTime<Utc>) {
        for (_, budget, spent, since) in &mut self.budgets {
            let begin = begin_of(budget.period, now);
            if begin > *since {
                (*spent, *since) = (0, begin);
            }
        }
    }

    /// Whether the start is granted.
    fn start(&mut self, token: usize, works: &[(Uuid, i64)], outputs: i64, now: DateTime<Utc>) -> bool {
        let total: i64 = works.iter().map(|(_, amount)| amount).sum();
        let needed = |budget: &Budget| if budget.unit == BudgetUnit::Credits { total } else { outputs };
        let concerned = |owner: usize| owner == 2 || owner == token;
        let fits = |(owner, budget, spent, _): &(usize, Budget, i64, DateTime<Utc>)| {
            !concerned(*owner) || needed(budget) == 0 || spent + needed(budget) <= budget.max
        };
        if !self.budgets.iter().all(fits) || total > self.balance {
            return false;
        }
        self.balance -= total;
        for (owner, budget, spent, _) in &mut self.budgets {
            if concerned(*owner) {
                *spent += needed(budget);
            }
        }
        self.jobs.extend(works.iter().map(|(id, amount)| (*id, token, *amount, now)));
        true
    }

    /// Returns a part of what a job holds.
    fn give_back(&mut self, job: usize, percent: i64) -> Option<(Uuid, i64)> {
        let at = job.checked_rem(self.jobs.len())?;
        let (id, token, left, reserved_at) = &mut self.jobs[at];
        let amount = *left * percent / 100;
        *left = 0;
        self.balance += amount;
        for (owner, budget, spent, since) in &mut self.budgets {
            if budget.unit == BudgetUnit::Credits && (*owner == 2 || *owner == *token) && *since <= *reserved_at {
                *spent = (*spent - amount).max(0);
            }
        }
        Some((*id, amount))
    }

    fn set(&mut self, owner: usize, wanted: &[Budget], now: DateTime<Utc>) {
        let mut kept: Vec<_> = self.budgets.iter().filter(|(of, ..)| *of != owner).copied().collect();
        for budget in wanted {
            let is_same = |it: &&(usize, Budget, i64, DateTime<Utc>)| {
                it.0 == owner && (it.1.unit, it.1.period) == (budget.unit, budget.period)
            };
            let counted = self.budgets.iter().find(is_same).map_or((0, now), |(_, _, spent, since)| (*spent, *since));
            kept.push((owner, *budget, counted.0, counted.1));
        }
        self.budgets = kept;
    }

    /// What is spent: owner, unit, period, amount.
    fn spent(&self) -> Vec<(usize, String, i64)> {
        let mut spent: Vec<_> =
            self.budgets.iter().map(|(owner, it, spent, _)| (*owner, it.to_string(), *spent)).collect();
        spent.sort();
        spent
    }
}

async fn run_against_model(fixture: &Fixture, steps: Vec<Step>) {
    let account = Uuid::now_v7().to_string().as_str().parse_uid();
    fixture.add_account(&account, 60).await;
    let mut model = Model { balance: 60, ..Model::default() };
    let tokens = [Uuid::now_v7(), Uuid::now_v7()];
    for step in steps {
        let now: DateTime<Utc> = sqlx::query_scalar("SELECT clock_timestamp()")
            .fetch_one(fixture.database.pool())
            .await
            .expect("tells the time");
        model.roll(now);
        match &step {
            Step::Start { token, amounts, outputs } => {
                let works: Vec<_> = amounts.iter().map(|amount| (Uuid::now_v7(), *amount)).collect();
                let payer = Payer { account: &account, authority: tokens[*token], owner: BudgetOwner::Token };
                let total = amounts.iter().sum();
                let dry = ledger::judge(&mut *fixture.conn().await, payer, total, *outputs).await.expect("judges");
                let funding = start(&fixture.database, payer, &works, *outputs).await;
                assert_eq!(funding, dry);
                assert_eq!(
                    funding == Funding::Granted,
                    model.start(*token, &works, *outputs, now),
                    "{step:?}: {funding:?}"
                );
            }
            Step::Return { job, percent } => {
                if let Some((id, amount)) = model.give_back(*job, *percent) {
                    give_back(&fixture.database, &account, id, amount).await;
                }
            }
            Step::Set { owner, budgets } => {
                let mut wanted: Vec<Budget> = Vec::new();
                for &(unit, period, max) in budgets {
                    wanted.retain(|it| (it.unit, it.period) != (unit, period));
                    wanted.push(Budget { unit, period, max });
                }
                let mut tx = crate::pool::begin(fixture.database.pool()).await.expect("begins");
                set(&mut tx, &account, tokens.get(*owner).copied(), &wanted).await.expect("sets");
                crate::pool::commit(tx).await.expect("commits");
                model.set(*owner, &wanted, now);
            }
            Step::Pass { days } => {
                pass(&fixture.database, i32::from(*days)).await;
                let earlier = |time: &mut DateTime<Utc>| *time = *time - Days::new(u64::from(*days));
                model.budgets.iter_mut().for_each(|it| earlier(&mut it.3));
                model.jobs.iter_mut().for_each(|it| earlier(&mut it.3));
                model.roll(now);
            }
        }
        let list = list(&mut *fixture.conn().await, &account, &tokens, BudgetOwner::Token).await.expect("lists");
        let owner = |of: Option<Uuid>| tokens.iter().position(|token| Some(*token) == of).unwrap_or(2);
        let mut spent: Vec<_> = list
            .iter()
            .map(|(of, it)| (owner(*of), format!("{}:{}:{}", it.unit, it.period, it.max), it.spent))
            .collect();
        spent.sort();
        assert_eq!(spent, model.spent(), "after {step:?}");
        let account = crate::accounts::find(&mut *fixture.conn().await, account.as_str()).await.expect("reads");
        assert_eq!(account.expect("exists").credit_balance, model.balance);
    }
}

/// Starts, returns, changed budgets and passing days in any order leave what the model says, after each step.
#[test]
fn budgets_count_as_their_model_does() {
    let runtime = Runtime::new().expect("starts");
    let fixture = runtime.block_on(Fixture::new(0));
    let config = Config { cases: 60, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&steps(), |steps| {
        runtime.block_on(run_against_model(&fixture, steps));
        Ok(())
    });
    runtime.block_on(async move {
        if let Err(error) = result {
            panic!("{error}");
        }
        drop(fixture);
    });
}

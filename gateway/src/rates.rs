//! Rates: what a token, an account or an address may use over time (docs/reference/limits.md#rates).
//!
//! **Guarantee.** A request is judged by its token and its account together, in one call of Redis, and a refused one takes from
//! neither. A client that goes on after a refusal costs neither the database nor Redis until its wait is over.
//!
//! **Mechanism.** One table ([`Rate`]) names each rate, and one function asks Redis. The account is known only after the credential
//! was looked up. So each process remembers refusals for as long as they say, at most a second, and answers requests with the same
//! secret by them. A memory of refusals grants nothing: a revoked token is refused like any other, and is told so a second later at
//! most. Use that is known only afterwards, such as the length of a body, is debited.
//!
//! **Reason.** A credential must not be cached (docs/reference/authentication.md#revocation), and Redis need not be available.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use cache::{Bucket, Cache, Quota, RateDecision};
use db::accounts::Credential;
use domain::id::AccountUid;
use domain::limits::{
    DEVICES_PER_MINUTE, MEMBER_CHANGES_PER_MINUTE, OAUTH_REGISTRATIONS_PER_MINUTE, OAUTH_TOKENS_PER_MINUTE,
    POINTERS_PER_MINUTE, SIGN_INS_PER_MINUTE, TOKENS_PER_HOUR,
};
use http::{HeaderName, HeaderValue};
use http_body::Body as _;
use http_body_util::BodyExt;
use service::config::Config;
use tokio::runtime::Handle;
use tokio::time::Instant;
use uuid::Uuid;

use crate::problem::{Problem, Result};
use crate::state::App;

/// Bytes of a body, or of an answer that is compressed for one request, that weigh as much as a request.
pub const WEIGHED_BYTES: usize = 1024 * 1024;
/// Weight of a request for a PNG render.
pub const PNG_RENDER_WEIGHT: u32 = 10;
/// Weight of a request for an import.
pub const IMPORT_WEIGHT: u32 = 20;
/// Maximum time for which a refusal is remembered.
const REMEMBERED: Duration = Duration::from_secs(1);
/// Maximum refusals that a process remembers.
const REFUSALS_MAX: usize = 10_000;

/// What is limited over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rate {
    /// Requests of a token or session.
    Token,
    /// Requests of an account by all of its tokens and sessions.
    Account,
    /// Tokens that an account creates in the console, and apps that it allows.
    Tokens,
    /// Sign-ins to the console from an address.
    SignIns,
    /// Requests of OAuth clients for tokens, and to end them, from an address.
    OauthTokens,
    /// Registrations of OAuth clients from an address.
    OauthRegistrations,
    /// Device codes that an address asks for.
    Devices,
    /// Pointers that a session sends in the console.
    Pointers,
    /// Changes of members by an account, because each one discloses whether an email is that of an account.
    Members,
}

impl Rate {
    /// The table: the name in keys, the quota (`None`: no limit), and what a refusal says.
    fn row(self, config: &Config) -> (&'static str, Option<Quota>, &'static str) {
        let of_strangers = |count| (config.failed_auth_per_minute > 0).then(|| Quota::per_minute(count, count));
        let optional = |count, burst| (count > 0 && burst > 0).then(|| Quota::per_minute(count, burst));
        match self {
            Self::Token => {
                ("token", optional(config.rate_per_minute, config.rate_burst), "too many requests with this token")
            }
            Self::Account => (
                "account",
                optional(config.account_rate_per_minute, config.account_rate_burst),
                "too many requests of this account",
            ),
            Self::Tokens => {
                let quota = Quota::per_hour(TOKENS_PER_HOUR, TOKENS_PER_HOUR);
                ("tokens", Some(quota), "an account may create 20 tokens and apps an hour")
            }
            Self::SignIns => ("signin", of_strangers(SIGN_INS_PER_MINUTE), "too many sign-ins from this address"),
            Self::OauthTokens => {
                ("oauth-token", of_strangers(OAUTH_TOKENS_PER_MINUTE), "too many requests for tokens from this address")
            }
            Self::OauthRegistrations => (
                "oauth-register",
                of_strangers(OAUTH_REGISTRATIONS_PER_MINUTE),
                "too many registrations from this address",
            ),
            Self::Devices => {
                ("oauth-device", of_strangers(DEVICES_PER_MINUTE), "too many device codes for this address")
            }
            Self::Pointers => {
                let quota = Quota::per_minute(POINTERS_PER_MINUTE, POINTERS_PER_MINUTE);
                ("pointers", Some(quota), "a session may send 600 pointers a minute")
            }
            Self::Members => {
                let quota = Quota::per_minute(MEMBER_CHANGES_PER_MINUTE, MEMBER_CHANGES_PER_MINUTE);
                ("members", Some(quota), "members may be changed 20 times a minute")
            }
        }
    }
}

/// The buckets of several uses, without those that have no limit, and what the refusal of each says.
fn buckets(app: &App, uses: &[(Rate, &(dyn Display + Sync))]) -> (Vec<Bucket>, Vec<&'static str>) {
    let limited = uses.iter().filter_map(|(rate, user)| {
        let (name, quota, refusal) = rate.row(&app.config);
        Some((Bucket { key: format!("{name}:{user}"), quota: quota? }, refusal))
    });
    limited.unzip()
}

/// Takes `weight` from all of `buckets`. `None` without one, and when Redis did not answer: the use may pass.
async fn decide(app: &App, weight: u32, buckets: &[Bucket]) -> Option<RateDecision> {
    if buckets.is_empty() { None } else { app.cache.take(weight, buckets).await }
}

/// Takes one use of `rate` by `user`; 429 beyond its limit.
pub async fn take(app: &App, rate: Rate, user: &(dyn Display + Sync)) -> Result<()> {
    let (buckets, refusals) = buckets(app, &[(rate, user)]);
    match decide(app, 1, &buckets).await {
        Some(decision) if !decision.allowed => Err(refused(refusals[decision.bucket], &decision)),
        _ => Ok(()),
    }
}

fn refused(refusal: &str, decision: &RateDecision) -> Problem {
    Problem::RateLimited(refusal.into(), whole_seconds(decision.retry_after))
}

/// Rejects the start of free work of an account that has no processor time left; 429
/// (docs/reference/conventions.md#processor-time-of-free-work).
pub async fn require_cpu(app: &App, account: &AccountUid) -> Result<()> {
    match app.cache.peek_cpu(account.as_str()).await {
        Some(decision) if !decision.allowed => {
            Err(refused("the free work of this account used its processor time", &decision))
        }
        _ => Ok(()),
    }
}

/// Whole seconds, rounded up, so that a client that waits this long is admitted.
pub fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Rates that most requests take from.
pub const ORDINARY: &[Rate] = &[Rate::Token, Rate::Account];

/// Judges a request of `weight` whose credential holds by `rates`; 429 when its token or its account used what it may.
pub async fn admit(app: &App, charges: &Charges, credential: &Credential, rates: &[Rate], weight: u32) -> Result<()> {
    let of = |rate: &Rate| -> (Rate, &(dyn Display + Sync)) {
        (*rate, if *rate == Rate::Account { &credential.account } else { &credential.token })
    };
    let (buckets, refusals) = buckets(app, &rates.iter().map(of).collect::<Vec<_>>());
    let decision = decide(app, weight, &buckets).await;
    let uid = credential.account.clone();
    charges.0.account.set(Account { uid, cache: app.cache.clone(), buckets }).ok();
    let Some(decision) = decision else { return Ok(()) };
    charges.0.told.set(decision).ok();
    if decision.allowed {
        return Ok(());
    }
    let why = refusals[decision.bucket];
    app.refusals.remember(credential, rates, Refusal { weight, made: Instant::now(), decision, why });
    Err(refused(why, &decision))
}

/// Refusals that clients are still to wait for.
#[derive(Default)]
pub struct Refusals(Mutex<HashMap<RefusedBy, (Credential, Refusal)>>);

/// A token, and the first of the rates that its requests take from: a refusal by others says nothing of them.
type RefusedBy = (Uuid, Option<Rate>);

/// A refused request.
#[derive(Clone, Copy)]
struct Refusal {
    weight: u32,
    made: Instant,
    decision: RateDecision,
    why: &'static str,
}

impl Refusal {
    fn is_over(&self) -> bool {
        self.made.elapsed() >= self.decision.retry_after.min(REMEMBERED)
    }
}

impl Refusals {
    /// The answer to a request of `weight` with a token that takes from `rates`, by a refusal of the same or a smaller weight. `holds` decides whether the
    /// request has the credential that was refused.
    pub fn recall(
        &self,
        charges: &Charges,
        token: Uuid,
        rates: &[Rate],
        weight: u32,
        holds: impl FnOnce(&Credential) -> bool,
    ) -> Option<Problem> {
        let mut refusals = self.lock();
        let by = (token, rates.first().copied());
        let (credential, refusal) = refusals.get(&by)?;
        if refusal.is_over() {
            refusals.remove(&by);
            return None;
        }
        if weight < refusal.weight || !holds(credential) {
            return None;
        }
        charges.0.told.set(refusal.decision).ok();
        Some(refused(refusal.why, &refusal.decision))
    }

    fn remember(&self, credential: &Credential, rates: &[Rate], refusal: Refusal) {
        let mut refusals = self.lock();
        if refusals.len() >= REFUSALS_MAX {
            refusals.retain(|_, (_, refusal)| !refusal.is_over());
        }
        if refusals.len() < REFUSALS_MAX {
            refusals.insert((credential.token, rates.first().copied()), (credential.clone(), refusal));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RefusedBy, (Credential, Refusal)>> {
        // The map is consistent after every statement, so a poisoned lock guards a valid value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a request is charged to, once its credential holds. Clones are those of one request: in its extensions, and in the layers
/// around its handler.
#[derive(Clone, Default)]
pub struct Charges(Arc<Charged>);

#[derive(Default)]
struct Charged {
    told: OnceLock<RateDecision>,
    account: OnceLock<Account>,
}

struct Account {
    uid: AccountUid,
    cache: Cache,
    buckets: Vec<Bucket>,
}

impl Charges {
    /// The headers that tell the bucket with the least left (docs/reference/conventions.md#rate-limits); none without a decision.
    pub fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let told = self.0.told.get().map(|decision| {
            [
                (HeaderName::from_static("ratelimit-limit"), u64::from(decision.limit)),
                (HeaderName::from_static("ratelimit-remaining"), u64::from(decision.remaining)),
                (HeaderName::from_static("ratelimit-reset"), whole_seconds(decision.reset_after)),
            ]
        });
        told.into_iter().flatten().map(|(name, value)| (name, HeaderValue::from(value)))
    }

    /// Debits what `bytes` weigh, without a delay for the caller: one for each whole MiB.
    pub fn debit(&self, bytes: usize) {
        let units = u32::try_from(bytes / WEIGHED_BYTES).unwrap_or(u32::MAX);
        let (Some(Account { cache, buckets, .. }), Ok(runtime)) = (self.0.account.get(), Handle::try_current()) else {
            return;
        };
        if units > 0 && !buckets.is_empty() {
            let (cache, buckets) = (cache.clone(), buckets.clone());
            runtime.spawn(async move { cache.debit(units, &buckets).await });
        }
    }

    /// The account of the request.
    pub fn account(&self) -> Option<&AccountUid> {
        self.0.account.get().map(|account| &account.uid)
    }

    /// Debits processor time, without a delay for the caller.
    pub fn debit_cpu(&self, time: Duration) {
        if let (Some(Account { uid, cache, .. }), Ok(runtime)) = (self.0.account.get(), Handle::try_current()) {
            let (uid, cache) = (uid.clone(), cache.clone());
            let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            runtime.spawn(async move { cache.debit_cpu(uid.as_str(), milliseconds).await });
        }
    }

    /// The body of the request, which is debited when it ends or is dropped, by the bytes that arrived.
    pub fn weighed(&self, body: Body) -> Body {
        match body.size_hint().upper() {
            Some(most) if most < WEIGHED_BYTES as u64 => body,
            _ => {
                let mut arrived = Arrived { bytes: 0, charges: self.clone() };
                Body::new(body.map_frame(move |frame| {
                    arrived.count(frame.data_ref().map_or(0, Bytes::len));
                    frame
                }))
            }
        }
    }
}

/// Bytes of a body that have arrived, debited on drop.
struct Arrived {
    bytes: usize,
    charges: Charges,
}

impl Arrived {
    fn count(&mut self, bytes: usize) {
        self.bytes += bytes;
    }
}

impl Drop for Arrived {
    fn drop(&mut self) {
        self.charges.debit(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::account::{Scopes, Surface, TokenKind};
    use domain::id::AccountUid;

    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Config {
        let ring = "k:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let base = [("CANVAS_DATABASE_URL", "postgres://db/canvas"), ("CANVAS_MASTER_KEYS", ring)];
        let given = |name: &str| {
            pairs.iter().chain(&base).find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Config::from_lookup(&[], given).expect("valid")
    }

    #[test]
    fn each_rate_has_its_quota_and_some_can_be_switched_off() {
        let quota = |rate: Rate, pairs: &[(&str, &str)]| rate.row(&config(pairs)).1;
        let (minute, hour) = (Quota::per_minute, Quota::per_hour);
        let rates = [Rate::Token, Rate::Account, Rate::Tokens, Rate::SignIns, Rate::Members, Rate::Pointers];
        let defaults = rates.map(|rate| quota(rate, &[]));
        assert_eq!(
            defaults,
            [minute(1200, 200), minute(6000, 1000), hour(20, 20), minute(30, 30), minute(20, 20), minute(600, 600)]
                .map(Some)
        );
        for (rate, variable) in [
            (Rate::Token, "CANVAS_RATE_PER_MINUTE"),
            (Rate::Token, "CANVAS_RATE_BURST"),
            (Rate::Account, "CANVAS_ACCOUNT_RATE_PER_MINUTE"),
            (Rate::Account, "CANVAS_ACCOUNT_RATE_BURST"),
            (Rate::SignIns, "CANVAS_FAILED_AUTH_PER_MINUTE"),
            (Rate::OauthTokens, "CANVAS_FAILED_AUTH_PER_MINUTE"),
            (Rate::OauthRegistrations, "CANVAS_FAILED_AUTH_PER_MINUTE"),
        ] {
            assert_eq!(quota(rate, &[(variable, "0")]), None, "{variable}");
            assert!(quota(rate, &[(variable, "1")]).is_some(), "{variable}");
        }
    }

    fn credential(token: Uuid) -> Credential {
        Credential {
            token,
            authority: token,
            kind: TokenKind::Agent,
            is_narrow: false,
            label: "l".into(),
            scopes: Scopes::from_slice(&[]),
            surface: Surface::Api,
            secret_hash: b"hash".to_vec(),
            previous_hash: None,
            valid: true,
            use_unrecorded: false,
            signed_in_at: service::clock::now().into(),
            expires_at: None,
            account: AccountUid::parse("a").expect("valid"),
            role: domain::account::Role::Member,
            email: "a@example.com".into(),
            display_name: "A".into(),
            credit_balance: 0,
            confirm_by: None,
        }
    }

    fn refusal(weight: u32, retry_after: Duration) -> Refusal {
        let reset_after = Duration::from_secs(10);
        let decision = RateDecision { allowed: false, bucket: 0, limit: 200, remaining: 0, reset_after, retry_after };
        Refusal { weight, made: Instant::now(), decision, why: "too many" }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_answers_the_holder_of_the_secret_until_its_wait_is_over_and_no_longer_than_a_second() {
        let refusals = Refusals::default();
        let recall =
            |token, weight, holds: bool| refusals.recall(&Charges::default(), token, ORDINARY, weight, |_| holds);
        for (told, kept) in [(50, 50), (1000, 1000), (60_000, 1000)] {
            let token = Uuid::now_v7();
            refusals.remember(&credential(token), ORDINARY, refusal(1, Duration::from_millis(told)));
            assert!(recall(Uuid::now_v7(), 1, true).is_none(), "another token");
            assert!(recall(token, 1, false).is_none(), "another secret is looked up as ever");
            tokio::time::advance(Duration::from_millis(kept - 1)).await;
            assert!(matches!(recall(token, 1, true), Some(Problem::RateLimited(_, 1 | 60))), "{told}");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(recall(token, 1, true).is_none(), "{told}");
        }
        assert!(refusals.lock().is_empty(), "what is over is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_of_a_heavy_request_stops_no_lighter_one() {
        let (refusals, token) = (Refusals::default(), Uuid::now_v7());
        refusals.remember(&credential(token), ORDINARY, refusal(20, Duration::from_secs(1)));
        let recall = |weight| refusals.recall(&Charges::default(), token, ORDINARY, weight, |_| true).is_some();
        assert_eq!((recall(1), recall(19), recall(20), recall(21)), (false, false, true, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_by_one_rate_stops_no_request_of_another() {
        let (refusals, token) = (Refusals::default(), Uuid::now_v7());
        refusals.remember(&credential(token), &[Rate::Pointers], refusal(1, Duration::from_secs(1)));
        let recall = |rates: &[Rate]| refusals.recall(&Charges::default(), token, rates, 1, |_| true).is_some();
        assert_eq!((recall(ORDINARY), recall(&[Rate::Pointers])), (false, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_recalled_refusal_tells_what_the_refusal_told() {
        let (refusals, token, charges) = (Refusals::default(), Uuid::now_v7(), Charges::default());
        refusals.remember(&credential(token), ORDINARY, refusal(1, Duration::from_millis(2500)));
        let recalled = refusals.recall(&charges, token, ORDINARY, 1, |_| true);
        assert!(matches!(recalled, Some(Problem::RateLimited(_, 3))), "2.5 s, rounded up");
        let told: Vec<_> = charges.headers().map(|(name, value)| (name.to_string(), value)).collect();
        let expected = [("ratelimit-limit", 200), ("ratelimit-remaining", 0), ("ratelimit-reset", 10)];
        assert_eq!(told, expected.map(|(name, number)| (name.to_owned(), HeaderValue::from(number))));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_refusals_are_remembered_than_there_is_room_for() {
        let refusals = Refusals::default();
        for _ in 0..REFUSALS_MAX + 10 {
            refusals.remember(&credential(Uuid::now_v7()), ORDINARY, refusal(1, Duration::from_secs(1)));
        }
        assert_eq!(refusals.lock().len(), REFUSALS_MAX);
        tokio::time::advance(Duration::from_secs(1)).await;
        let token = Uuid::now_v7();
        refusals.remember(&credential(token), ORDINARY, refusal(1, Duration::from_secs(1)));
        assert_eq!(refusals.lock().len(), 1, "what is over makes room");
    }

    #[tokio::test]
    async fn a_body_arrives_as_it_is_whether_or_not_it_is_counted() {
        for length in [0, WEIGHED_BYTES - 1, WEIGHED_BYTES, 3 * WEIGHED_BYTES] {
            let body = Charges::default().weighed(Body::from(vec![b'x'; length]));
            assert_eq!(body.collect().await.expect("arrives").to_bytes().len(), length);
        }
    }
}

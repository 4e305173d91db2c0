//! The memory that parsed bodies take: an estimate before parsing, and shares to wait for.
//!
//! **Guarantee.** In one process, the values made of bodies and the violations of rejected ones take at most 256 MiB, whatever they
//! contain, messages to `/mcp` at most 128 MiB, and what their tools read as much. One account holds at most half of each. A body that
//! alone would exceed that is rejected with 413 before it is parsed. What takes at most [`FREE`] bytes waits for nobody.
//!
//! **Mechanism.** [`weigh`] computes what `serde_json` will allocate. The value is held twice, since a body is copied once more when
//! it is brought to its canonical form, as long as the value lives. Each kind has a share of its own, so that a request that holds one of
//! them does not wait for requests that wait for the same one. Two growths are left: violations wait for [`VIOLATIONS_WAIT`] and are told
//! as one without memory; a tool that reads several answers is refused after the usual time.
//!
//! **Reason.** A body of 16 MiB can become 1.6 GB, and one account must not make the requests of all others wait.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use service::json::{Weight, weigh};
use service::shares::{Held, Key, Shares};
use tokio::time::timeout;

use crate::admission::{self, WAIT_MAX, crowded};
use crate::extract::caller::Principal;
use crate::problem::{Problem, Result};
use crate::rates::Charges;

const MIB: u64 = 1024 * 1024;
/// Bytes of a parsed body that nobody waits for.
pub(super) const FREE: u64 = 64 * 1024;
/// What is held are multiples of this many bytes, which covers what a short buffer allocates ahead.
const BLOCK: u64 = 64 * 1024;
/// Bytes of parsed bodies of a process. One account holds at most half.
pub(super) const VALUES_TOTAL: u64 = 256 * MIB;
/// The same for messages, which are held while requests that they cause take of the others, and for the answers that tools read.
pub(super) const MESSAGES_TOTAL: u64 = 128 * MIB;
/// Copies of a body's content that exist at the same time, at most.
const COPIES: u64 = 2;
/// How long violations wait for memory while their body holds some.
const VIOLATIONS_WAIT: Duration = Duration::from_secs(1);
/// Bytes that the violations of one value take, at most.
const VALUE_VIOLATIONS: u64 = 1024;
/// Copies of a text in the violations of its schema, at most: one for each form of a value with several forms, and one of the value.
const TEXT_COPIES: u64 = 3;

static VALUES: LazyLock<Shares> = LazyLock::new(|| Shares::new("parsed", VALUES_TOTAL, VALUES_TOTAL / 2));
static MESSAGES: LazyLock<Shares> = LazyLock::new(|| Shares::new("messages", MESSAGES_TOTAL, MESSAGES_TOTAL / 2));
static ANSWERS: LazyLock<Shares> = LazyLock::new(|| Shares::new("answers", MESSAGES_TOTAL, MESSAGES_TOTAL / 2));

/// The memory of parsed bodies, held as long as this lives.
pub struct BodyMemory {
    share: Shares,
    key: Key,
    /// The share of work on the value, and what it is charged to; none for a body without a credential, which is small.
    large_work: Option<(Shares, Charges)>,
    /// Bytes that are needed. Up to [`FREE`], nothing is held.
    bytes: u64,
    held: Option<Held>,
}

/// Memory for the value of a body.
pub fn values(principal: Option<Principal>) -> BodyMemory {
    BodyMemory::new(&VALUES, principal)
}

/// Memory for a message.
pub(super) fn messages(principal: Option<Principal>) -> BodyMemory {
    BodyMemory::new(&MESSAGES, principal)
}

/// Memory for the answers that a tool reads.
pub fn answers(principal: Option<Principal>) -> BodyMemory {
    BodyMemory::new(&ANSWERS, principal)
}

/// Who holds the memory of a body.
pub(super) fn key_of(principal: Option<&Principal>) -> Key {
    principal.map_or_else(|| Key::name(""), |principal| principal.key.clone())
}

impl BodyMemory {
    fn new(share: &Shares, principal: Option<Principal>) -> Self {
        let key = key_of(principal.as_ref());
        let large_work = principal.map(|principal| (principal.large_work, principal.charges));
        Self { share: share.clone(), key, large_work, bytes: 0, held: None }
    }

    /// Waits for the memory that parsing `text` takes; 413 when one account may not hold so much.
    pub async fn parse(&mut self, text: &[u8]) -> Result<()> {
        let Weight { value, parsing } = self.work_on(text.len(), || weigh(text)).await?;
        self.take(COPIES * value + parsing, WAIT_MAX).await
    }

    /// Does work on the value of the text; when that is large, within the share of its account. What counts is the memory that it takes:
    /// a short text of many small values is more work than a long one.
    pub async fn work<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        self.work_on(self.bytes as usize, work).await
    }

    async fn work_on<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> Result<T> {
        match &self.large_work {
            Some((share, charges)) => admission::work(share, charges, &self.key, bytes, work).await,
            None => Ok(work()),
        }
    }

    /// Waits for the memory that the violations of `value` take. Returns `false` when there is none.
    pub(super) async fn judge(&mut self, value: &Value) -> bool {
        self.take(violations_bytes(value), VIOLATIONS_WAIT).await.is_ok()
    }

    /// Waits at most `patience` for `bytes` more.
    async fn take(&mut self, bytes: u64, patience: Duration) -> Result<()> {
        let bytes = self.bytes.saturating_add(bytes);
        if bytes > self.share.per_key() {
            self.share.refuse("size");
            return Err(Problem::PayloadTooHeavy);
        }
        if bytes > FREE {
            let units = bytes.next_multiple_of(BLOCK);
            let taken = async {
                match &mut self.held {
                    Some(held) => held.grow(units.saturating_sub(held.units())).await.is_ok(),
                    None => {
                        self.held = Some(self.share.hold(&self.key, units).await);
                        true
                    }
                }
            };
            match timeout(patience, taken).await {
                Ok(true) => {}
                Ok(false) => return Err(Problem::PayloadTooHeavy),
                Err(_) => return Err(crowded(&self.share, "waited")),
            }
        }
        self.bytes = bytes;
        Ok(())
    }
}

/// The memory that the violations of `value` take, at most. No schema describes what is in `custom`.
pub fn violations_bytes(value: &Value) -> u64 {
    let within = match value {
        Value::String(text) => TEXT_COPIES * text.len() as u64,
        Value::Array(items) => items.iter().map(violations_bytes).sum(),
        Value::Object(fields) => {
            let described = fields.iter().filter(|(key, _)| *key != "custom");
            described.map(|(key, field)| TEXT_COPIES * key.len() as u64 + violations_bytes(field)).sum()
        }
        _ => 0,
    };
    VALUE_VIOLATIONS + within
}

#[cfg(test)]
mod tests {
    use domain::limits::{JSON_BODY_MAX, OPERATIONS_BODY_MAX};
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::counting::peak_of;

    const MIB: usize = 1024 * 1024;

    /// The estimated and the measured bytes of a text.
    fn said_and_taken(text: &str) -> (u64, u64) {
        (weigh(text.as_bytes()).total(), peak_of(|| serde_json::from_str::<Value>(text)))
    }

    #[test]
    fn no_text_takes_more_than_is_said_of_it() {
        let fields = |keys: &mut dyn Iterator<Item = usize>| {
            let fields: Vec<String> = keys.map(|key| format!("\"{key:05}\":{key}")).collect();
            format!("{{{}}}", fields.join(","))
        };
        let many = |piece: &str, count: usize| format!("[{}]", vec![piece; count].join(","));
        for text in [
            many(r#"{"":0}"#, 10_000),
            many("[0]", 10_000),
            many("[[[[[]]]]]", 1000),
            many("{ }", 10_000),
            many("0", 100_001),
            many(r#""""#, 10_000),
            many(r#""a""#, 10_000),
            many(r#"{"x":123.25,"y":"a\u0041\n"}"#, 10_000),
            many(&fields(&mut (0..12)), 100),
            many(&fields(&mut (0..13).rev()), 100),
            fields(&mut (0..20_000)),
            fields(&mut (0..20_000).rev()),
            fields(&mut (0..20_000).map(|key| key * 7919 % 20_000)),
            format!("\"{}\"", "x".repeat(MIB)),
            format!("\"{}\"", "\\n".repeat(MIB / 2)),
            format!("{}1{}", "[".repeat(120), "]".repeat(120)),
            // Malformed JSON costs what was parsed before the error.
            format!("[{}", r#"{"a":[1,"b"]},"#.repeat(1000)),
            "[".repeat(100_000),
            format!("\"{}", "x".repeat(MIB)),
            r#""\"#.to_owned(),
            String::new(),
        ] {
            let (said, taken) = said_and_taken(&text);
            assert!(taken <= said, "{taken} of {said}: {}", &text[..text.len().min(60)]);
        }
    }

    #[test]
    fn little_more_is_said_of_a_body_than_it_takes() {
        let node = |title: &str| {
            json!({"type": "node.create", "node": {"type": "text", "title": title, "position": {"x": 0, "y": 1.5},
                "metadata": {"content": "c".repeat(500), "custom": {"points": [1, 2, 3], "by": {"name": "n"}}}}})
        };
        let batch = json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![node("t"); 200]});
        let (said, taken) = said_and_taken(&batch.to_string());
        assert!(taken <= said && said <= taken * 3 / 2, "{taken} of {said}");
    }

    const ACCOUNT: &str = "a";

    fn of(share: &Shares, name: &str) -> BodyMemory {
        BodyMemory::new(
            share,
            Some(Principal {
                key: Key::account(name),
                large_work: admission::large_work(),
                charges: Charges::default(),
            }),
        )
    }

    async fn parsed(text: &[u8]) -> Result<BodyMemory> {
        let mut memory = of(&VALUES, ACCOUNT);
        memory.parse(text).await.map(|()| memory)
    }

    /// Whether work on the value of a text waits while its account does as much large work as it may.
    async fn waits(text: &[u8]) -> bool {
        let mut memory = of(&VALUES, ACCOUNT);
        memory.parse(text).await.expect("has memory");
        let (share, _) = memory.large_work.as_ref().expect("has a share");
        let _held = share.try_hold(&memory.key, share.per_key()).expect("is free");
        memory.work(|| ()).now_or_never().is_none()
    }

    #[tokio::test]
    async fn a_short_text_of_many_small_values_is_large_work_and_a_long_one_of_few_is_not() {
        let many = format!("{{{}}}", (0..60_000).map(|key| format!("\"{key}\":null")).collect::<Vec<_>>().join(","));
        assert!(many.len() < MIB && waits(many.as_bytes()).await);
        assert!(!waits(format!("\"{}\"", "x".repeat(MIB / 8)).as_bytes()).await);
    }

    #[tokio::test]
    async fn the_largest_bodies_are_taken_and_those_that_become_too_large_are_not() {
        let costly = |bytes: usize| format!("[{}]", vec![r#"{"":0}"#; bytes / 7].join(","));
        // Each takes some 700 bytes, twice.
        let (fits, hostile) = (costly(JSON_BODY_MAX / 2), costly(JSON_BODY_MAX));
        assert!(parsed(fits.as_bytes()).await.is_ok());
        assert!(matches!(parsed(hostile.as_bytes()).await, Err(Problem::PayloadTooHeavy)));
        let custom = json!({"text": "x".repeat(63 * 1024), "more": [1, 2.5, null, {"a": "b"}]});
        let create = json!({"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0},
            "metadata": {"custom": custom}}});
        let batch = json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![create; 200]});
        assert!(parsed(batch.to_string().as_bytes()).await.is_ok());
        // The largest texts of all: of a batch, and of a message with a file.
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        assert!(parsed(text(OPERATIONS_BODY_MAX).as_bytes()).await.is_ok());
        assert!(of(&MESSAGES, ACCOUNT).parse(text(tools::MESSAGE_MAX).as_bytes()).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_is_refused_above_what_one_account_may_hold() {
        let share = Shares::new("test", 8 * BLOCK, 4 * BLOCK);
        for (bytes, fits) in [(4 * BLOCK - 1, true), (4 * BLOCK, true), (4 * BLOCK + 1, false)] {
            let mut memory = of(&share, ACCOUNT);
            let taken = memory.take(bytes, WAIT_MAX).await;
            assert_eq!(taken.is_ok(), fits, "{bytes}");
            assert!(fits || matches!(taken, Err(Problem::PayloadTooHeavy)));
        }
        assert_eq!(share.held(), 0);
    }

    #[tokio::test]
    async fn a_small_body_waits_for_nobody_and_a_large_one_for_its_own_account() {
        let share = Shares::new("test", 8 * BLOCK, 4 * BLOCK);
        let ask = async |name: &str, bytes: u64| {
            let mut memory = of(&share, name);
            memory.take(bytes, WAIT_MAX).await.map(|()| memory)
        };
        for (bytes, held) in [(FREE - 1, 0), (FREE, 0), (FREE + 1, 2 * BLOCK)] {
            let _memory = ask("a", bytes).await.expect("is free");
            assert_eq!(share.held(), held, "{bytes}");
        }
        let _all = ask("a", 4 * BLOCK).await.expect("the part of an account");
        assert!(ask("a", FREE).now_or_never().is_some(), "not even for its own account");
        assert!(ask("b", FREE + 1).now_or_never().is_some());
        assert!(ask("a", FREE + 1).now_or_never().is_none(), "the account has half of it");
        let _rest = ask("b", 4 * BLOCK).await.expect("the other half");
        assert!(ask("c", FREE).now_or_never().is_some());
        assert!(ask("c", FREE + 1).now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn violations_belong_to_their_body_and_wait_for_a_second() {
        let share = Shares::new("test", 6 * BLOCK, 4 * BLOCK);
        let mut memory = of(&share, ACCOUNT);
        memory.take(2 * BLOCK, WAIT_MAX).await.expect("is free");
        let values = |count: u64| json!(vec![0; usize::try_from(count / VALUE_VIOLATIONS).expect("few") - 1]);
        assert!(!memory.judge(&values(2 * BLOCK + VALUE_VIOLATIONS)).await, "more than an account may hold");
        assert!(memory.judge(&values(BLOCK)).await);
        assert_eq!(share.held(), 3 * BLOCK);
        let other = share.hold(&Key::account("b"), 3 * BLOCK).await;
        let began = tokio::time::Instant::now();
        assert!(!memory.judge(&values(BLOCK)).await, "there is none");
        assert_eq!(began.elapsed(), VIOLATIONS_WAIT);
        drop(other);
        assert!(memory.judge(&values(BLOCK)).await);
        drop(memory);
        assert_eq!(share.held(), 0);
    }
}

//! Who follows a canvas (docs/reference/events.md#presence).
//!
//! **Guarantee.** The tokens with open streams of a canvas, over all gateways; those of a crashed gateway for another lease at
//! most. While Redis is unavailable: those of this gateway.
//!
//! **Mechanism.** A gateway holds each of its tokens once for each canvas in Redis, under a short lease, and a background task
//! renews all leases in one round trip. The same task carries out joins and leaves in their order, and announces each on the
//! channel of its canvas.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use db::accounts::Credential;
use domain::account::Surface;
use domain::channel;
use domain::id::CanvasHandle;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(15);
/// A third of the lease, so that two lost renewals have no effect.
const RENEWAL: Duration = Duration::from_secs(5);
/// Maximum number of tokens that are held for a canvas.
const HELD_MAX: usize = 1000;
/// Maximum number of participants that are listed.
pub const LISTED_MAX: usize = 100;

/// The participants of this gateway.
pub struct Presence {
    cache: cache::Cache,
    /// Id of this process: distinguishes its own entries in Redis from those of others.
    gateway: Uuid,
    here: Mutex<HashMap<CanvasHandle, HashMap<Uuid, Here>>>,
    changes: mpsc::UnboundedSender<Change>,
}

/// A token with open streams of a canvas.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attendee {
    /// Label of the token.
    pub label: String,
    /// Surface of the token.
    pub surface: Surface,
    /// The token.
    #[serde(skip)]
    pub token: Uuid,
}

/// A token with open streams of a canvas in this gateway.
struct Here {
    who: Attendee,
    streams: usize,
}

/// A token that has opened its first or closed its last stream of a canvas.
struct Change {
    canvas: CanvasHandle,
    member: String,
    joined: bool,
}

/// An open stream of a canvas.
pub struct Present {
    presence: Arc<Presence>,
    canvas: CanvasHandle,
    token: Uuid,
}

fn key(canvas: &CanvasHandle) -> String {
    format!("presence:{canvas}")
}

impl Presence {
    /// No participants, and the background task, which runs as long as the process serves.
    pub fn new(cache: cache::Cache) -> (Arc<Self>, impl Future<Output = ()> + Send) {
        let (changes, mut changed) = mpsc::unbounded_channel();
        let presence = Arc::new(Self { cache, gateway: Uuid::now_v7(), here: Mutex::default(), changes });
        let running = presence.clone();
        let work = async move {
            let mut renewal = interval(RENEWAL);
            renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    Some(change) = changed.recv() => running.register(change).await,
                    _ = renewal.tick() => running.renew().await,
                }
            }
        };
        (presence, work)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CanvasHandle, HashMap<Uuid, Here>>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a stream of `canvas` until the returned value is dropped.
    pub fn join(self: &Arc<Self>, canvas: &CanvasHandle, caller: &Credential) -> Present {
        let mut here = self.lock();
        let tokens = here.entry(canvas.clone()).or_default();
        let token = tokens.entry(caller.token).or_insert_with(|| {
            let who = Attendee { label: caller.label.clone(), surface: caller.surface, token: caller.token };
            self.change(canvas, &who, true);
            Here { who, streams: 0 }
        });
        token.streams += 1;
        Present { presence: self.clone(), canvas: canvas.clone(), token: caller.token }
    }

    /// The participants of each canvas, one for each token, sorted.
    pub async fn list(&self, canvases: &[CanvasHandle]) -> Vec<Arc<[Attendee]>> {
        let keys: Vec<String> = canvases.iter().map(key).collect();
        let mut held = self.cache.held(&keys).await.unwrap_or_default();
        held.resize(canvases.len(), Vec::new());
        let here = self.lock();
        let lists = canvases.iter().zip(held).map(|(canvas, members)| {
            let elsewhere = members.iter().filter_map(|member| self.elsewhere(member));
            let own = here.get(canvas).into_iter().flat_map(HashMap::values).map(|here| here.who.clone());
            let by_token: BTreeMap<Uuid, Attendee> = elsewhere.chain(own).map(|who| (who.token, who)).collect();
            let mut who: Vec<Attendee> = by_token.into_values().collect();
            who.sort();
            who.truncate(LISTED_MAX);
            who.into()
        });
        lists.collect()
    }

    fn change(&self, canvas: &CanvasHandle, who: &Attendee, joined: bool) {
        let change = Change { canvas: canvas.clone(), member: self.member(who), joined };
        // Nobody listens any more when the process ends.
        let _ = self.changes.send(change);
    }

    /// A token as it is held in Redis.
    fn member(&self, who: &Attendee) -> String {
        serde_json::json!([self.gateway, who.token, who]).to_string()
    }

    /// The token of a member of another gateway.
    fn elsewhere(&self, member: &str) -> Option<Attendee> {
        let (gateway, token, who): (Uuid, Uuid, Attendee) = serde_json::from_str(member).ok()?;
        (gateway != self.gateway).then_some(Attendee { token, ..who })
    }

    async fn register(&self, Change { canvas, member, joined }: Change) {
        match joined {
            true => drop(self.cache.hold(&key(&canvas), &member, HELD_MAX, LEASE).await),
            false => self.cache.let_go(&key(&canvas), &member).await,
        }
        self.cache.notify([channel::canvas(&canvas)]).await;
    }

    async fn renew(&self) {
        let held: Vec<(String, String)> = self
            .lock()
            .iter()
            .flat_map(|(canvas, tokens)| tokens.values().map(move |here| (key(canvas), self.member(&here.who))))
            .collect();
        if !held.is_empty() {
            self.cache.renew(&held, LEASE).await;
        }
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut here = self.presence.lock();
        let Some(tokens) = here.get_mut(&self.canvas) else { return };
        let Some(token) = tokens.get_mut(&self.token) else { return };
        token.streams -= 1;
        if token.streams == 0 {
            self.presence.change(&self.canvas, &token.who, false);
            tokens.remove(&self.token);
        }
        if tokens.is_empty() {
            here.remove(&self.canvas);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::account::{Scopes, TokenKind};
    use domain::id::AccountUid;
    use testkit::{redis_prefix, redis_url, wait_for};
    use tokio_util::task::AbortOnDropHandle;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn caller(label: &str) -> Credential {
        Credential {
            kind: TokenKind::Agent,
            authority: Uuid::nil(),
            is_narrow: false,
            token: Uuid::now_v7(),
            label: label.into(),
            scopes: Scopes::from_slice(&[]),
            surface: Surface::Api,
            secret_hash: Vec::new(),
            previous_hash: None,
            valid: true,
            use_unrecorded: false,
            signed_in_at: service::clock::now().into(),
            expires_at: None,
            account: AccountUid::from_stored("owner".into()),
            role: domain::account::Role::Member,
            email: String::new(),
            display_name: String::new(),
            credit_balance: 0,
            confirm_by: None,
        }
    }

    fn canvas() -> CanvasHandle {
        CanvasHandle::try_from("canvas:owner:board".to_owned()).expect("a handle")
    }

    /// A gateway that stops to renew its leases when the handle is dropped.
    fn gateway(url: &str, prefix: &str) -> (Arc<Presence>, AbortOnDropHandle<()>) {
        let (presence, work) = Presence::new(cache::Cache::connect(url, prefix).expect("a Redis URL"));
        (presence, AbortOnDropHandle::new(tokio::spawn(work)))
    }

    async fn labels(presence: &Presence) -> Vec<String> {
        let list = presence.list(&[canvas()]).await.remove(0);
        list.iter().map(|who| who.label.clone()).collect()
    }

    async fn lists(presence: &Presence, wanted: &[&str]) {
        wait_for(&format!("{wanted:?}"), LIMIT, async || (labels(presence).await == wanted).then_some(())).await;
    }

    #[tokio::test]
    async fn each_token_is_listed_once_whatever_gateways_it_uses() {
        let prefix = redis_prefix();
        let (one, _one) = gateway(&redis_url(), &prefix);
        let (two, two_works) = gateway(&redis_url(), &prefix);
        let (ann, ben) = (caller("ann"), caller("ben"));
        let first = one.join(&canvas(), &ann);
        lists(&one, &["ann"]).await;
        let (again, elsewhere, other) =
            (one.join(&canvas(), &ann), two.join(&canvas(), &ann), two.join(&canvas(), &ben));
        for gateway in [&one, &two] {
            lists(gateway, &["ann", "ben"]).await;
        }
        drop((first, elsewhere));
        lists(&two, &["ann", "ben"]).await;
        drop(again);
        for gateway in [&one, &two] {
            lists(gateway, &["ben"]).await;
        }
        // The participants of a gateway that died are listed for a lease.
        drop(two_works);
        lists(&one, &[]).await;
        drop(other);
    }

    #[tokio::test]
    async fn without_redis_the_participants_of_this_gateway_are_listed() {
        let (presence, _work) = gateway("redis://127.0.0.1:1", "nobody");
        let open: Vec<Present> =
            (0..LISTED_MAX + 1).map(|number| presence.join(&canvas(), &caller(&format!("{number:03}")))).collect();
        assert_eq!(labels(&presence).await.len(), LISTED_MAX);
        drop(open);
        assert_eq!(labels(&presence).await.len(), 0);
        assert!(presence.lock().is_empty());
    }
}

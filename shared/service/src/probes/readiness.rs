//! The components that the process needs, and their state.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

/// Interval between two checks of a component, and the limit of a check: an outage is visible within four seconds.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Registry of components. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct Readiness {
    components: Arc<Mutex<BTreeMap<&'static str, ComponentReport>>>,
    stopping: CancellationToken,
}

/// Reports the state of one component.
#[derive(Clone, Debug)]
pub struct ComponentHandle {
    name: &'static str,
    readiness: Readiness,
}

/// The response of `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The combined state of the components.
    pub status: Status,
    /// Each component by name.
    pub components: BTreeMap<&'static str, ComponentReport>,
}

/// Readiness: `true` if this process takes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Everything works.
    Ready,
    /// A component fails that is not required.
    Degraded,
    /// A required component fails, or the process is shutting down.
    Unready,
}

/// The state of one component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComponentReport {
    /// `true` if it worked when it was last checked.
    pub ok: bool,
    /// `true` if the process is unready without it.
    pub required: bool,
    /// The reason why it does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Readiness {
    /// An empty registry that is unready once `stopping` is canceled.
    pub fn new(stopping: CancellationToken) -> Self {
        Self { components: Arc::default(), stopping }
    }

    /// Registers a component, which counts as failing until it is first set. Registering a name again resets it.
    pub fn component(&self, name: &'static str, required: bool) -> ComponentHandle {
        let unknown = ComponentReport { ok: false, required, message: Some("not checked yet".to_owned()) };
        self.lock().insert(name, unknown);
        gauge(name, false);
        ComponentHandle { name, readiness: self.clone() }
    }

    /// Reports the current state of all components.
    pub fn report(&self) -> Report {
        let components = self.lock().clone();
        let failing =
            |required: bool| components.values().any(|component| !component.ok && component.required == required);
        let status = if self.stopping.is_cancelled() || failing(true) {
            Status::Unready
        } else if failing(false) {
            Status::Degraded
        } else {
            Status::Ready
        };
        Report { status, components }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, ComponentReport>> {
        // Entries are replaced as a whole, so a poisoned lock guards a valid value.
        self.components.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ComponentHandle {
    /// Reports a working component.
    pub fn set_ok(&self) {
        if let Some(earlier) = self.set(None) {
            tracing::info!(component = self.name, earlier, "component {} works", self.name);
        }
    }

    /// Reports a failing component. `why` is shown to operators and logged when it is new, and must not contain a secret.
    pub fn set_failing(&self, why: &str) {
        if self.set(Some(why)).as_deref() != Some(why) {
            tracing::warn!(component = self.name, error = why, "component {} fails", self.name);
        }
    }

    /// Stores the state and returns the previous message.
    fn set(&self, message: Option<&str>) -> Option<String> {
        let mut components = self.readiness.lock();
        let component = components.get_mut(self.name)?;
        component.ok = message.is_none();
        gauge(self.name, component.ok);
        std::mem::replace(&mut component.message, message.map(str::to_owned))
    }
}

/// 1 while the component works, so that `/readyz` can be monitored over time.
fn gauge(component: &'static str, ok: bool) {
    metrics::gauge!("canvas_component_up", "component" => component).set(if ok { 1.0 } else { 0.0 });
}

/// Runs `check` every two seconds, with a limit of two seconds each, and reports its result until `stop` is canceled.
pub async fn watch_component<F, C>(handle: ComponentHandle, check: F, stop: CancellationToken)
where
    F: Fn() -> C,
    C: Future<Output = Result<(), String>>,
{
    let mut ticks = interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let rounds = async {
        loop {
            ticks.tick().await;
            match timeout(CHECK_INTERVAL, check()).await {
                Ok(Ok(())) => handle.set_ok(),
                Ok(Err(why)) => handle.set_failing(&why),
                Err(_) => handle.set_failing("no answer within two seconds"),
            }
        }
    };
    stop.run_until_cancelled(rounds).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> (Readiness, CancellationToken) {
        let stopping = CancellationToken::new();
        (Readiness::new(stopping.clone()), stopping)
    }

    #[test]
    fn a_required_component_makes_unready_until_it_is_ok() {
        let (readiness, _) = registry();
        assert_eq!(readiness.report().status, Status::Ready);
        let database = readiness.component("database", true);
        assert_eq!(readiness.report().status, Status::Unready);
        database.set_ok();
        assert_eq!(readiness.report().status, Status::Ready);
        database.set_failing("connection refused");
        let report = readiness.report();
        assert_eq!(report.status, Status::Unready);
        assert_eq!(report.components["database"].message.as_deref(), Some("connection refused"));
    }

    #[test]
    fn a_component_that_is_not_required_only_degrades() {
        let (readiness, _) = registry();
        readiness.component("database", true).set_ok();
        let redis = readiness.component("redis", false);
        assert_eq!(readiness.report().status, Status::Degraded);
        redis.set_ok();
        assert_eq!(readiness.report().status, Status::Ready);
    }

    #[test]
    fn stopping_makes_unready_although_everything_works() {
        let (readiness, stopping) = registry();
        readiness.component("database", true).set_ok();
        stopping.cancel();
        assert_eq!(readiness.report().status, Status::Unready);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watched_component_follows_its_check_and_a_hanging_check_fails() {
        let (readiness, stop) = registry();
        let (answer, answers) = tokio::sync::watch::channel(Some(Ok(())));
        let handle = readiness.component("database", true);
        let check = move || {
            let answer = answers.borrow().clone();
            async move {
                match answer {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            }
        };
        let watching = tokio::spawn(watch_component(handle, check, stop.clone()));
        let shows = async |message: Option<&str>| {
            // Time is virtual: it jumps to the next check as soon as everything waits.
            tokio::time::advance(Duration::from_millis(1)).await;
            for _ in 0..10 {
                if readiness.report().components["database"].message.as_deref() == message {
                    return;
                }
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
            panic!("never showed {message:?}");
        };
        shows(None).await;
        answer.send_replace(Some(Err("refused".to_owned())));
        shows(Some("refused")).await;
        answer.send_replace(None);
        shows(Some("no answer within two seconds")).await;
        answer.send_replace(Some(Ok(())));
        shows(None).await;
        stop.cancel();
        watching.await.expect("ends when stopped");
    }
}

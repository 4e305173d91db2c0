//! Metrics: one Prometheus recorder behind the `metrics` facade.
//!
//! Code records metrics with the macros of the `metrics` crate. A histogram named `*_seconds` has
//! fixed buckets, so that the histograms of several replicas can be aggregated. The name of a
//! counter ends in `_total`.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use thiserror::Error;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Upper bounds of the buckets of `*_seconds`, from a cached read (1 ms) to a long video job (15
/// minutes). Neighbors differ by a factor of about 2.5, which bounds the error of a quantile.
const SECONDS_BUCKETS: [f64; 18] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0];
/// The interval at which samples are aggregated into buckets. Until then they accumulate in memory, whether or
/// not anything scrapes the process.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Handle to the metrics of this process. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
}

/// Another metrics recorder is already installed.
#[derive(Clone, Copy, Debug, Error)]
#[error("another metrics recorder is already installed")]
pub struct RecorderTaken;

impl Metrics {
    /// Installs the recorder. The facade supports one recorder per process, so later calls return
    /// handles to the first one.
    ///
    /// # Errors
    ///
    /// [`RecorderTaken`] if other code installed a recorder.
    pub fn install() -> Result<Self, RecorderTaken> {
        static INSTALLED: OnceLock<Result<Metrics, RecorderTaken>> = OnceLock::new();
        INSTALLED
            .get_or_init(|| {
                let recorder = PrometheusBuilder::new()
                    .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)
                    .expect("only an empty list of buckets is refused")
                    .build_recorder();
                let handle = recorder.handle();
                metrics::set_global_recorder(recorder).map_err(|_| RecorderTaken)?;
                Ok(Self { handle })
            })
            .clone()
    }

    /// All metrics in the Prometheus text format, version 0.0.4.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Aggregates samples regularly until `stop` is canceled, which bounds the memory they use.
    /// Spawn it once per process.
    pub async fn upkeep(self, stop: CancellationToken) {
        let mut ticks = interval(UPKEEP_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            self.handle.run_upkeep();
        }
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installing_twice_gives_the_same_metrics() {
        let first = Metrics::install().expect("first");
        let second = Metrics::install().expect("second");
        metrics::counter!("test_installed_total").increment(2);
        assert!(first.render().contains("test_installed_total 2"));
        assert!(second.render().contains("test_installed_total 2"));
    }

    #[test]
    fn histograms_of_seconds_have_buckets() {
        let metrics = Metrics::install().expect("installed");
        metrics::histogram!("test_duration_seconds").record(0.002);
        let rendered = metrics.render();
        assert!(rendered.contains(r#"test_duration_seconds_bucket{le="0.001"} 0"#), "{rendered}");
        assert!(rendered.contains(r#"test_duration_seconds_bucket{le="0.0025"} 1"#), "{rendered}");
    }

    #[tokio::test]
    async fn upkeep_ends_when_it_is_stopped() {
        let stop = CancellationToken::new();
        stop.cancel();
        Metrics::install().expect("installed").upkeep(stop).await;
    }
}

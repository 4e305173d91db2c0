//! What a stack stands on: the services of the test run, shared with others, or those of a test alone.

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use testkit::{Proxy, TestDatabase};

use crate::services::Urls;
use crate::vhost::VirtualHost;

/// Connections for what a test asks of the database.
const POOL_CONNECTIONS: u32 = 8;

/// Services, and what of them belongs to one stack.
pub(crate) struct Ground {
    pool: PgPool,
    urls: Urls,
    networks: Option<Networks>,
    /// Given back with the stack.
    _lent: Option<(TestDatabase, VirtualHost)>,
}

/// A network in front of each service, as the processes see it.
pub struct Networks {
    /// To PostgreSQL.
    pub database: Proxy,
    /// To Redis.
    pub redis: Proxy,
    /// To RabbitMQ.
    pub broker: Proxy,
}

impl Ground {
    /// A database and a virtual host of the test run's services.
    pub(crate) async fn shared() -> Self {
        let (database, virtual_host) = tokio::join!(TestDatabase::new(), VirtualHost::take());
        let urls = Urls { database: database.url(), redis: testkit::redis_url(), broker: virtual_host.url() };
        Self { pool: database.pool().clone(), urls, networks: None, _lent: Some((database, virtual_host)) }
    }

    /// Services of the test's own, which must outlive the stack.
    pub(crate) fn own(urls: &Urls) -> Self {
        let pool = PgPoolOptions::new().max_connections(POOL_CONNECTIONS).connect_lazy(&urls.database);
        Self { pool: pool.expect("a database URL"), urls: urls.clone(), networks: None, _lent: None }
    }

    /// The same behind a network that can fail.
    pub(crate) async fn behind_networks(self) -> Self {
        let networks = Networks {
            database: Proxy::in_front_of(&self.urls.database).await,
            redis: Proxy::in_front_of(&self.urls.redis).await,
            broker: Proxy::in_front_of(&self.urls.broker).await,
        };
        Self { networks: Some(networks), ..self }
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Where a test finds the broker itself.
    pub(crate) fn broker(&self) -> &str {
        &self.urls.broker
    }

    pub(crate) fn networks(&self) -> Option<&Networks> {
        self.networks.as_ref()
    }

    /// Where the processes find the services.
    pub(crate) fn seen_by_processes(&self) -> Urls {
        match &self.networks {
            None => self.urls.clone(),
            Some(Networks { database, redis, broker }) => {
                Urls { database: database.url(), redis: redis.url(), broker: broker.url() }
            }
        }
    }
}

//! The services of a stack: those of the test run, which stacks share, or those of one test.

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use testkit::{Proxy, TestDatabase};

use crate::services::Urls;
use crate::vhost::VirtualHost;

/// Connections for queries of the test itself.
const POOL_CONNECTIONS: u32 = 8;

/// Services, and the parts of them that belong to one stack.
pub(crate) struct Ground {
    pool: PgPool,
    urls: Urls,
    networks: Option<Networks>,
    /// Returned when the stack is dropped.
    lent: Option<(TestDatabase, VirtualHost)>,
}

/// A proxy in front of each service, which the processes connect to.
pub struct Networks {
    /// The proxy of PostgreSQL.
    pub database: Proxy,
    /// The proxy of Redis.
    pub redis: Proxy,
    /// The proxy of RabbitMQ.
    pub broker: Proxy,
}

impl Ground {
    /// A database and a virtual host of the test run's services.
    pub(crate) async fn shared() -> Self {
        let (database, virtual_host) = tokio::join!(TestDatabase::new(), VirtualHost::take());
        let urls = Urls { database: database.url(), redis: testkit::redis_url(), broker: virtual_host.url() };
        Self { pool: database.pool().clone(), urls, networks: None, lent: Some((database, virtual_host)) }
    }

    /// The test's own services, or those of a stack that another process keeps. They must outlive the stack.
    pub(crate) fn of(urls: &Urls) -> Self {
        let pool = PgPoolOptions::new().max_connections(POOL_CONNECTIONS).connect_lazy(&urls.database);
        Self { pool: pool.expect("a database URL"), urls: urls.clone(), networks: None, lent: None }
    }

    /// The same services behind proxies that can fail.
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

    /// The URLs at which the test reaches the services directly.
    pub(crate) fn urls(&self) -> &Urls {
        &self.urls
    }

    /// Leaves the database on the server, which the first test that starts an hour later drops.
    pub(crate) fn keep_database(&mut self) {
        if let Some((database, _)) = self.lent.take() {
            std::mem::forget(database);
        }
    }

    pub(crate) fn networks(&self) -> Option<&Networks> {
        self.networks.as_ref()
    }

    /// The URLs at which the processes reach the services.
    pub(crate) fn seen_by_processes(&self) -> Urls {
        match &self.networks {
            None => self.urls.clone(),
            Some(Networks { database, redis, broker }) => {
                Urls { database: database.url(), redis: redis.url(), broker: broker.url() }
            }
        }
    }
}

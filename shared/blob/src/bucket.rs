//! Buckets of S3, Google Cloud Storage and Azure Blob Storage.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use crate::{Error, Result};

/// The number of retries and the time within which they begin. Callers wait for an answer, and
/// failed tasks are retried as a whole.
const RETRIES: usize = 4;
const RETRY_LIMIT: Duration = Duration::from_secs(20);

/// Time limit for connecting, and for inactivity of a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const READ_LIMIT: Duration = Duration::from_secs(10);

/// Opens the bucket of `url` with these environment variables. It is not contacted.
pub(crate) fn open(url: &Url, variables: impl Iterator<Item = (String, String)>) -> Result<Arc<dyn ObjectStore>> {
    let bucket = url.host_str().ok_or(Error::Unsupported)?;
    // The client uses the process-wide crypto provider. An error means that the same one was
    // already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let prefix = Path::from_url_path(url.path()).map_err(|error| Error::Open(error.into()))?;
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_LIMIT, ..RetryConfig::default() };
    // A large object may take long, but a connection without progress times out.
    let client =
        ClientOptions::new().with_timeout_disabled().with_connect_timeout(CONNECT_LIMIT).with_read_timeout(READ_LIMIT);
    Ok(match url.scheme() {
        "gs" => {
            let builder = GoogleCloudStorageBuilder::new().with_client_options(client).with_retry(retry);
            let builder = configured(builder, "GOOGLE_", variables, |builder, name, value| {
                name.parse().map(|key| builder.clone().with_config(key, value)).ok()
            });
            let bucket = builder.with_bucket_name(bucket).build().map_err(Error::Open)?;
            Arc::new(PrefixStore::new(bucket, prefix))
        }
        "az" => {
            let builder = MicrosoftAzureBuilder::new().with_client_options(client).with_retry(retry);
            let builder = configured(builder, "AZURE_", variables, |builder, name, value| {
                name.parse().map(|key| builder.clone().with_config(key, value)).ok()
            });
            let container = builder.with_container_name(bucket).build().map_err(Error::Open)?;
            Arc::new(PrefixStore::new(container, prefix))
        }
        _ => {
            let builder = AmazonS3Builder::new().with_client_options(client).with_retry(retry);
            let builder = configured(builder, "AWS_", variables, |builder, name, value| {
                name.parse().map(|key| builder.clone().with_config(key, value)).ok()
            });
            let bucket = builder.with_bucket_name(bucket).build().map_err(Error::Open)?;
            Arc::new(PrefixStore::new(bucket, prefix))
        }
    })
}

/// Adds options from the environment: those that begin with `start` and that `add` knows, in lower case. `from_env` of the builders
/// does the same but cannot start from existing options.
fn configured<B>(
    builder: B,
    start: &str,
    variables: impl Iterator<Item = (String, String)>,
    add: impl Fn(&B, &str, String) -> Option<B>,
) -> B {
    variables
        .filter(|(name, _)| name.starts_with(start))
        .fold(builder, |builder, (name, value)| add(&builder, &name.to_ascii_lowercase(), value).unwrap_or(builder))
}

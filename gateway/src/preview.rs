//! Preview URLs: short-lived capabilities for one image each (docs/reference/assets.md#preview-urls).
//!
//! A token is the asset's handle, its epoch and an expiry, encrypted deterministically. It opens while the asset has that epoch, which
//! moves when somebody loses a right to the asset. The expiry counts from the latest five-minute mark, so
//! that the URL of an asset stays the same for a while and browsers can cache it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::API_ROOT;
use domain::asset::Preview;
use domain::id::AssetHandle;
use service::keys::DerivedKeys;

const CONTEXT: &str = "asset-preview";
/// Maximum distance between two marks, in seconds.
const MARK_MAX: i64 = 300;

/// Makes and opens preview tokens.
pub struct Previews {
    /// Public origin of the gateway, without a trailing slash.
    origin: String,
    /// Lifetime of a token from its mark, in seconds, at least 1.
    ttl: i64,
}

/// A token that was opened.
#[derive(Debug, PartialEq)]
pub struct Opened {
    pub asset: AssetHandle,
    /// The epoch that the asset must still have.
    pub epoch: i64,
    /// Remaining lifetime in seconds, at least 1.
    pub remaining: u64,
}

impl Previews {
    /// Previews under `origin` with the lifetime `ttl`.
    pub fn new(origin: &str, ttl: Duration) -> Self {
        Self { origin: origin.to_owned(), ttl: i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX).max(1) }
    }

    /// The preview of `asset`, which has this epoch, at `now`.
    pub fn make(&self, keys: &DerivedKeys, asset: &AssetHandle, epoch: i64, now: DateTime<Utc>) -> Preview {
        let period = MARK_MAX.min(self.ttl / 3).max(1);
        let now = now.timestamp();
        let expiry = now - now.rem_euclid(period) + self.ttl;
        let token = keys.preview().encrypt(CONTEXT, format!("{expiry} {epoch} {asset}").as_bytes());
        Preview {
            url: format!("{}{API_ROOT}/assets/preview?token={token}", self.origin),
            expires_in_seconds: u64::try_from(expiry - now).unwrap_or(1).max(1),
        }
    }

    /// The content of a token; `None` when it is malformed, tampered with or expired.
    pub fn open(&self, keys: &DerivedKeys, token: &str, now: DateTime<Utc>) -> Option<Opened> {
        let text = String::from_utf8(keys.preview().decrypt(CONTEXT, token)?).ok()?;
        let (expiry, rest) = text.split_once(' ')?;
        // A token of the release before has no epoch. It was made in the first one.
        let (epoch, asset) = rest.split_once(' ').unwrap_or(("0", rest));
        let epoch = epoch.parse().ok()?;
        let remaining = expiry.parse::<i64>().ok()? - now.timestamp();
        let asset = AssetHandle::try_from(asset.to_owned()).ok()?;
        u64::try_from(remaining).ok().filter(|remaining| *remaining > 0).map(|remaining| Opened {
            asset,
            epoch,
            remaining,
        })
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use service::keys::InstallationKey;

    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        Utc.timestamp_opt(seconds, 0).single().expect("valid")
    }

    fn setting() -> (Previews, DerivedKeys, AssetHandle) {
        let keys = DerivedKeys::derive(&InstallationKey::from_bytes([7; 32]));
        let asset = AssetHandle::try_from("asset:me:a1".to_owned()).expect("valid");
        (Previews::new("http://h", Duration::from_secs(900)), keys, asset)
    }

    fn token(url: &str) -> &str {
        url.split_once("token=").expect("has a token").1
    }

    #[test]
    fn a_url_stays_the_same_until_the_next_mark() {
        let (previews, keys, asset) = setting();
        let url = |seconds| previews.make(&keys, &asset, 0, at(seconds)).url;
        assert_eq!(url(3000), url(3299));
        assert_ne!(url(3299), url(3300));
    }

    #[test]
    fn a_token_opens_until_it_expires() {
        let (previews, keys, asset) = setting();
        let preview = previews.make(&keys, &asset, 7, at(3100));
        assert_eq!(preview.expires_in_seconds, 800);
        let open = |seconds| previews.open(&keys, token(&preview.url), at(seconds));
        assert_eq!(open(3899), Some(Opened { asset, epoch: 7, remaining: 1 }));
        assert_eq!(open(3900), None);
    }

    #[test]
    fn a_token_of_one_second_still_lives() {
        let (_, keys, asset) = setting();
        let previews = Previews::new("http://h", Duration::from_secs(1));
        let preview = previews.make(&keys, &asset, 0, at(3100));
        assert_eq!(preview.expires_in_seconds, 1);
        assert!(previews.open(&keys, token(&preview.url), at(3100)).is_some());
    }

    #[test]
    fn a_token_without_an_epoch_is_of_the_first_one() {
        let (previews, keys, asset) = setting();
        let token = keys.preview().encrypt(CONTEXT, format!("3900 {asset}").as_bytes());
        assert_eq!(previews.open(&keys, &token, at(3899)), Some(Opened { asset, epoch: 0, remaining: 1 }));
    }

    #[test]
    fn a_tampered_token_does_not_open() {
        let (previews, keys, asset) = setting();
        let url = previews.make(&keys, &asset, 0, at(0)).url;
        let good = token(&url);
        for index in 0..good.len() {
            let mut bytes = good.as_bytes().to_vec();
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let tampered = String::from_utf8(bytes).expect("ascii");
            assert_eq!(previews.open(&keys, &tampered, at(0)), None, "{index}");
        }
    }
}

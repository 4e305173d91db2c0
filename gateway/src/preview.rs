//! Preview and video URLs: short-lived capabilities for one image or video each (docs/reference/assets.md#preview-urls).
//!
//! A token is the asset's handle, its epoch and an expiry, encrypted deterministically. It opens while the asset has that epoch, which
//! moves when somebody loses a right to the asset. The expiry counts from the latest five-minute mark, so
//! that the URL of an asset stays the same for a while and browsers can cache it. Each kind of token is encrypted under a context of
//! its own, so that none opens as the other: who has the poster of a video does not have the video.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::API_ROOT;
use domain::asset::{AssetRecord, AssetUrls, Preview};
use domain::id::AssetHandle;
use service::keys::DerivedKeys;

/// What a token opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    /// The image of an asset, or the poster of a video.
    Image,
    /// The video of an asset.
    Video,
}

impl Opens {
    fn context(self) -> &'static str {
        match self {
            Self::Image => "asset-preview",
            Self::Video => "asset-video",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Image => "preview",
            Self::Video => "video",
        }
    }
}

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

    /// The URLs of an asset at `now`.
    pub fn urls(&self, keys: &DerivedKeys, asset: &AssetRecord, now: DateTime<Utc>) -> AssetUrls {
        let url = |opens| self.make_for(opens, keys, &asset.handle, asset.preview_epoch, now);
        let has_image = asset.video.as_ref().is_none_or(|video| video.poster.is_some());
        AssetUrls {
            preview: has_image.then(|| url(Opens::Image)),
            video: asset.video.as_ref().map(|_| url(Opens::Video)),
        }
    }

    /// The preview of the image `asset`, which has this epoch, at `now`.
    pub fn make(&self, keys: &DerivedKeys, asset: &AssetHandle, epoch: i64, now: DateTime<Utc>) -> Preview {
        self.make_for(Opens::Image, keys, asset, epoch, now)
    }

    fn make_for(
        &self,
        opens: Opens,
        keys: &DerivedKeys,
        asset: &AssetHandle,
        epoch: i64,
        now: DateTime<Utc>,
    ) -> Preview {
        let period = MARK_MAX.min(self.ttl / 3).max(1);
        let now = now.timestamp();
        let expiry = now - now.rem_euclid(period) + self.ttl;
        let token = keys.preview().encrypt(opens.context(), format!("{expiry} {epoch} {asset}").as_bytes());
        Preview {
            url: format!("{}{API_ROOT}/assets/{}?token={token}", self.origin, opens.path()),
            expires_in_seconds: u64::try_from(expiry - now).unwrap_or(1).max(1),
        }
    }

    /// The content of a token; `None` when it is malformed, tampered with, expired or of another kind.
    pub fn open(&self, opens: Opens, keys: &DerivedKeys, token: &str, now: DateTime<Utc>) -> Option<Opened> {
        let text = String::from_utf8(keys.preview().decrypt(opens.context(), token)?).ok()?;
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
        let open = |seconds| previews.open(Opens::Image, &keys, token(&preview.url), at(seconds));
        assert_eq!(open(3899), Some(Opened { asset, epoch: 7, remaining: 1 }));
        assert_eq!(open(3900), None);
    }

    #[test]
    fn a_token_of_one_second_still_lives() {
        let (_, keys, asset) = setting();
        let previews = Previews::new("http://h", Duration::from_secs(1));
        let preview = previews.make(&keys, &asset, 0, at(3100));
        assert_eq!(preview.expires_in_seconds, 1);
        assert!(previews.open(Opens::Image, &keys, token(&preview.url), at(3100)).is_some());
    }

    #[test]
    fn a_token_without_an_epoch_is_of_the_first_one() {
        let (previews, keys, asset) = setting();
        let token = keys.preview().encrypt(Opens::Image.context(), format!("3900 {asset}").as_bytes());
        assert_eq!(
            previews.open(Opens::Image, &keys, &token, at(3899)),
            Some(Opened { asset, epoch: 0, remaining: 1 })
        );
    }

    #[test]
    fn a_token_opens_as_its_own_kind_alone() {
        let (previews, keys, asset) = setting();
        for (made, other) in [(Opens::Image, Opens::Video), (Opens::Video, Opens::Image)] {
            let url = previews.make_for(made, &keys, &asset, 0, at(0)).url;
            assert!(previews.open(made, &keys, token(&url), at(0)).is_some(), "{made:?}");
            assert_eq!(previews.open(other, &keys, token(&url), at(0)), None, "{made:?}");
        }
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
            assert_eq!(previews.open(Opens::Image, &keys, &tampered, at(0)), None, "{index}");
        }
    }
}

//! Stored addresses and tokens: `$XDG_CONFIG_HOME/canvas/config.toml`.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use crate::failure::{Outcome, file, usage};

/// How long other processes may take for their changes, each of which reads and writes a file.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// The configuration.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Name of the profile that is used unless another one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The profiles by name.
    #[serde(default)]
    pub profiles: BTreeMap<String, Profile>,
    /// The default canvas of each service, by its address.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub canvases: BTreeMap<String, String>,
}

/// A service, and a token of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Origin of the service.
    pub base_url: String,
    /// The token.
    pub token: String,
    /// How the token is replaced, if a person allowed access in the browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Refresh>,
}

/// How an access token is replaced.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// The refresh token.
    pub token: String,
    /// From when on, in seconds since 1970.
    pub at: i64,
    /// The end of the access token, in seconds since 1970. Without it, the token is taken to have ended when it is due.
    #[serde(default)]
    pub end: i64,
}

/// The time in seconds since 1970.
pub fn now() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the age of a stored token is judged by the clock of this machine")]
    let now = chrono::Utc::now();
    now.timestamp()
}

impl Profile {
    /// Returns `true` if it is time to replace the token.
    pub fn is_due(&self) -> bool {
        self.refresh.as_ref().is_some_and(|refresh| refresh.at <= now())
    }

    /// Returns `true` if the token is not good any more.
    pub fn has_ended(&self) -> bool {
        self.refresh.as_ref().is_some_and(|refresh| refresh.end <= now())
    }

    /// The refresh token.
    pub fn refresh_token(&self) -> Option<&str> {
        self.refresh.as_ref().map(|refresh| refresh.token.as_str())
    }

    /// Returns `true` if the profile is for the service at this address.
    pub fn is_of(&self, url: &str) -> bool {
        self.base_url.trim_end_matches('/') == url.trim_end_matches('/')
    }
}

impl Configuration {
    /// The profile that is in use.
    pub fn current(&self) -> Option<&Profile> {
        self.profiles.get(self.current.as_ref()?)
    }

    /// A profile of the service at this address, with its name: the one that is in use before others.
    pub fn of_service(&self, url: &str) -> Option<(&String, &Profile)> {
        let current = self.current.as_ref().and_then(|name| self.profiles.get_key_value(name));
        current.into_iter().chain(&self.profiles).find(|(_, profile)| profile.is_of(url))
    }

    /// Changes the configuration. Processes do so in turn, so that none of them undoes the change of another one. `edit` is not
    /// asynchronous, because the others wait: what it needs of the network is there before.
    pub async fn change<T>(edit: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        let _lock = lock().await?;
        let before = Self::load()?;
        let mut configuration = before.clone();
        let result = edit(&mut configuration)?;
        if configuration != before {
            configuration.save()?;
        }
        Ok(result)
    }

    /// Reads the configuration; an empty one when there is none. Others must not be able to read the file, because it holds tokens.
    pub fn load() -> Outcome<Self> {
        let path = path()?;
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(file(&path, &error)),
        };
        let mode = fs::metadata(&path).map_err(|error| file(&path, &error))?.permissions().mode();
        if mode & 0o077 != 0 {
            return usage(format!("{0} holds tokens and can be read by others: run chmod 600 {0}", path.display()));
        }
        toml::from_str(&text).or_else(|error| usage(format!("{}: {}", path.display(), error.message())))
    }

    /// Replaces the file by one that only its owner can read.
    fn save(&self) -> Outcome {
        let path = path()?;
        let text = toml::to_string(self).or_else(|error| usage(error.to_string()))?;
        let new = path.with_extension("new");
        let write = || {
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            // A file that an interrupted command left behind may have another mode.
            let _ = fs::remove_file(&new);
            let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            to.write_all(text.as_bytes())?;
            to.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(|error| file(&path, &error))
    }
}

/// The lock of the configuration, which ends when it is dropped. `None` if the file system has no locks: then the change is made without
/// it. Fails if other processes keep it for too long.
async fn lock() -> Outcome<Option<File>> {
    let path = path()?.with_extension("lock");
    let open = || OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let lock = open().or_else(|error| match path.parent() {
        Some(directory) if error.kind() == ErrorKind::NotFound => fs::create_dir_all(directory).and_then(|()| open()),
        _ => Err(error),
    });
    let lock = lock.map_err(|error| file(&path, &error))?;
    let locked = timeout(LOCK_WAIT, async {
        loop {
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => sleep(LOCK_INTERVAL).await,
                tried => return tried.is_ok(),
            }
        }
    });
    match locked.await {
        Ok(is_locked) => Ok(is_locked.then_some(lock)),
        Err(_) => usage(format!(
            "{}: another process has kept this lock for {} s: nothing was changed",
            path.display(),
            LOCK_WAIT.as_secs()
        )),
    }
}

fn path() -> Outcome<PathBuf> {
    Ok(directory("XDG_CONFIG_HOME", ".config")?.join("config.toml"))
}

/// The directory of this program below one of the XDG base directories.
pub fn directory(variable: &str, default: &str) -> Outcome<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(default)));
    match base {
        Some(base) => Ok(base.join("canvas")),
        None => usage(format!("neither {variable} nor HOME is set")),
    }
}

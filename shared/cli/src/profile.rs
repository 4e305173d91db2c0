//! Stored addresses and tokens: `$XDG_CONFIG_HOME/canvas/config.toml`.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::failure::{Outcome, file, usage};

/// The configuration.
#[derive(Default, Serialize, Deserialize)]
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
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Origin of the service.
    pub base_url: String,
    /// The token.
    pub token: String,
}

impl Profile {
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

    /// A profile of the service at this address: the one that is in use before others.
    pub fn of_service(&self, url: &str) -> Option<&Profile> {
        self.current().into_iter().chain(self.profiles.values()).find(|profile| profile.is_of(url))
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
    pub fn save(&self) -> Outcome {
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

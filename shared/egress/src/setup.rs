//! Builds the outbound client from the operator's configuration.

use std::path::Path;

use crate::{AllowList, AllowListError, Client, ClientConfig, ClientError, Guard};

/// The values of the environment variables.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The value of `CANVAS_EGRESS_ALLOW`.
    pub allow: &'a str,
    /// The value of `CANVAS_EGRESS_CA_FILE`.
    pub ca_file: Option<&'a Path>,
}

/// The reason why the settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The allow list is invalid.
    #[error("CANVAS_EGRESS_ALLOW: invalid")]
    Allow(#[from] AllowListError),
    /// The CA file cannot be read.
    #[error("CANVAS_EGRESS_CA_FILE: cannot read the file")]
    Unreadable(#[source] std::io::Error),
    /// The CA file is invalid.
    #[error("CANVAS_EGRESS_CA_FILE: cannot build a TLS client with these certificates")]
    Client(#[source] ClientError),
    /// There is no CA file, and the system has no certificates to verify servers with.
    #[error("no root certificates on this system: install ca-certificates, or name a file in CANVAS_EGRESS_CA_FILE")]
    NoRoots(#[source] ClientError),
}

impl Client {
    /// Builds the configured client.
    ///
    /// # Errors
    ///
    /// The first invalid setting, with the name of its variable.
    pub fn load(settings: Settings<'_>) -> Result<Self, SetupError> {
        let guard = Guard::new(AllowList::parse(settings.allow)?);
        let extra_ca_pem = settings.ca_file.map(std::fs::read).transpose().map_err(SetupError::Unreadable)?;
        Self::new(ClientConfig { guard, extra_ca_pem }).map_err(|error| match settings.ca_file {
            Some(_) => SetupError::Client(error),
            None => SetupError::NoRoots(error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_reported_by_its_variable() {
        let refused = |allow, ca_file| Client::load(Settings { allow, ca_file }).err().expect("wrong").to_string();
        assert!(refused("10.0.0.1/8", None).starts_with("CANVAS_EGRESS_ALLOW: "));
        assert!(refused("", Some(Path::new("/nowhere/ca.pem"))).starts_with("CANVAS_EGRESS_CA_FILE: "));
        assert!(refused("", Some(Path::new(file!()))).starts_with("CANVAS_EGRESS_CA_FILE: "));
    }
}

//! The way out as an operator sets it up.

use std::path::Path;

use crate::{AllowList, AllowListError, Client, ClientConfig, ClientError, Guard};

/// The variables, as they were read.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// `CANVAS_EGRESS_ALLOW`.
    pub allow: &'a str,
    /// `CANVAS_EGRESS_CA_FILE`.
    pub ca_file: Option<&'a Path>,
}

/// Why a process does not start with these settings.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The list is refused.
    #[error("CANVAS_EGRESS_ALLOW: it is refused")]
    Allow(#[from] AllowListError),
    /// The file cannot be read.
    #[error("CANVAS_EGRESS_CA_FILE: it cannot be read")]
    Unreadable(#[source] std::io::Error),
    /// The file is refused, or there is nothing else to verify servers with.
    #[error("CANVAS_EGRESS_CA_FILE: no client can be made with it")]
    Client(#[from] ClientError),
}

impl Client {
    /// Builds the client that is set up.
    ///
    /// # Errors
    ///
    /// The first setting that is refused, by its name.
    pub fn load(settings: Settings<'_>) -> Result<Self, SetupError> {
        let guard = Guard::new(AllowList::parse(settings.allow)?);
        let extra_ca_pem = settings.ca_file.map(std::fs::read).transpose().map_err(SetupError::Unreadable)?;
        Ok(Self::new(ClientConfig { guard, extra_ca_pem })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_by_its_variable() {
        let refused = |allow, ca_file| Client::load(Settings { allow, ca_file }).err().expect("wrong").to_string();
        assert!(refused("10.0.0.1/8", None).starts_with("CANVAS_EGRESS_ALLOW: "));
        assert!(refused("", Some(Path::new("/nowhere/ca.pem"))).starts_with("CANVAS_EGRESS_CA_FILE: "));
        assert!(refused("", Some(Path::new(file!()))).starts_with("CANVAS_EGRESS_CA_FILE: "));
    }
}

//! Clients: programs that ask people for access.
//!
//! A registered client is its `client_id`: the metadata, encrypted under a key of this installation. So who registers stores nothing here,
//! and nobody else can make such an id.

use domain::account::AppKind;
use domain::limits::CLIENT_NAME_MAX;
use serde::{Deserialize, Serialize};
use service::config::OauthMode;
use uuid::Uuid;

use super::redirect;
use crate::problem::Result;
use crate::state::App;

/// What an encrypted `client_id` is for.
const CONTEXT: &str = "client";
const REGISTERED: &str = "cbi_";
/// The prefix of the `client_id` of a listed client.
pub const LISTED: &str = "cbl_";
/// The `client_id` of the command line.
pub const COMMAND_LINE: &str = "canvas-cli";

/// A client that may ask for access.
#[derive(Clone, Debug)]
pub struct Client {
    /// The client, as it is recorded with what a person grants to it.
    pub recorded: db::oauth::Client,
    /// Its redirect addresses.
    pub redirect_uris: Vec<String>,
}

/// The metadata in a `client_id`. Members have short names, because the id is part of URLs.
#[derive(Serialize, Deserialize)]
struct Metadata {
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "r")]
    redirect_uris: Vec<String>,
}

impl Client {
    /// The command line of the service.
    pub fn command_line() -> Self {
        let (id, name) = (COMMAND_LINE.to_owned(), "Canvas command line".to_owned());
        Self {
            recorded: db::oauth::Client { id, kind: AppKind::CommandLine, name, host: None },
            redirect_uris: vec!["http://127.0.0.1/callback".to_owned()],
        }
    }

    /// The client with this id; `None` if there is none, or the operator does not admit it.
    pub async fn find(app: &App, id: &str) -> Result<Option<Self>> {
        let is_usable = |uri: &String| redirect::is_usable(uri, &app.config.oauth_redirect_schemes);
        let found = if let Some(encrypted) = id.strip_prefix(REGISTERED).filter(|_| app.config.oauth == OauthMode::Open)
        {
            let metadata = app.keys.client().decrypt(CONTEXT, encrypted);
            let metadata: Option<Metadata> = metadata.and_then(|metadata| serde_json::from_slice(&metadata).ok());
            metadata.map(|metadata| (AppKind::Registered, metadata.name, metadata.redirect_uris))
        } else if id.strip_prefix(LISTED).is_some_and(|id| Uuid::try_parse(id).is_ok()) {
            let listed = db::oauth::listed_clients(&mut *app.connection().await?, Some(id)).await?;
            listed.into_iter().next().map(|client| (AppKind::Listed, client.name, client.redirect_uris))
        } else if id == COMMAND_LINE {
            return Ok(Some(Self::command_line()));
        } else {
            None
        };
        Ok(found.map(|(kind, name, redirect_uris)| Self {
            recorded: db::oauth::Client { id: id.to_owned(), kind, name, host: None },
            // The operator may have removed a scheme since.
            redirect_uris: redirect_uris.into_iter().filter(is_usable).collect(),
        }))
    }

    /// Returns `true` if an address in a request is one of the client's.
    pub fn has(&self, redirect_uri: &str) -> bool {
        self.redirect_uris.iter().any(|registered| redirect::matches(registered, redirect_uri))
    }
}

/// The `client_id` of a client that registers itself.
pub fn registered_id(app: &App, name: &str, redirect_uris: &[String]) -> String {
    let metadata = Metadata { name: name.to_owned(), redirect_uris: redirect_uris.to_vec() };
    let metadata = serde_json::to_vec(&metadata).expect("texts serialize");
    format!("{REGISTERED}{}", app.keys.client().encrypt(CONTEXT, &metadata))
}

/// A name as people are shown it: without characters that are invisible or change the direction of writing, and cut.
pub fn shown_name(name: &str) -> String {
    let is_hidden = |character: char| {
        character.is_control()
            || matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    };
    let shown: String = name.chars().filter(|character| !is_hidden(*character)).collect();
    let words: Vec<&str> = shown.split_whitespace().collect();
    let shown: String = words.join(" ").chars().take(CLIENT_NAME_MAX).collect();
    if shown.is_empty() { "Unnamed app".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_without_what_hides_or_reverses_text() {
        for (name, shown) in [
            ("Claude Code", "Claude Code"),
            ("  a \n b\u{a0}c ", "a b c"),
            ("Canvas Service ✔\u{202e}deifirev", "Canvas Service ✔deifirev"),
            ("a\u{200b}b\u{feff}\u{2066}", "ab"),
            ("", "Unnamed app"),
            ("\u{200b}", "Unnamed app"),
        ] {
            assert_eq!(shown_name(name), shown, "{name:?}");
        }
        assert_eq!(shown_name(&"ü".repeat(10_000)), "ü".repeat(CLIENT_NAME_MAX));
    }
}

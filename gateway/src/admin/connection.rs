//! `canvas-gateway admin connection`: saved connections to third-party providers.

use std::io::Read;

use app::connection::{NewConnection, wrong_key, wrong_name};
use clap::Subcommand;
use db::connections::{self, BaseUrl};
use domain::limits::CONNECTION_KEY_MAX;
use domain::model::ProviderKind;
use providers::base_url;
use serde_json::{Value, json};
use service::config::Secret;
use uuid::Uuid;

use super::{CommandError, Context, Result, account};
use crate::models::{model_ids, saved};

/// Maximum length of a base URL.
const BASE_URL_MAX: usize = 2048;

/// The subcommands of `admin connection`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Save a connection. A connection of the same account, provider and name keeps its id and gets the new key.
    Create {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
        #[arg(long, help = kinds())]
        provider: String,
        /// Display name; 1 to 80 characters.
        #[arg(long)]
        name: String,
        /// Read the provider's API key from standard input, so that it appears neither in the process list nor in a shell
        /// history.
        #[arg(long, required = true)]
        api_key_stdin: bool,
        /// Base URL of the provider's API, when it is not the provider's own address.
        #[arg(long)]
        base_url: Option<String>,
    },
    /// List the connections of an account, oldest first.
    List {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
    },
    /// Delete a connection; its models can no longer be used.
    Delete {
        /// Id of the connection.
        id: String,
    },
}

fn kinds() -> String {
    let kinds: Vec<&str> = ProviderKind::third_parties().map(ProviderKind::as_str).collect();
    format!("Provider: {}", kinds.join(", "))
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::Create { account, provider, name, base_url, .. } => {
            let wanted = Wanted::parse(&provider, &name, base_url.as_deref())?;
            create(context, &account, wanted, key_from_stdin()?).await
        }
        Command::List { account } => list(context, &account).await,
        Command::Delete { id } => delete(context, &id).await,
    }
}

#[derive(Debug)]
struct Wanted {
    provider: ProviderKind,
    name: String,
    base_url: Option<String>,
}

impl Wanted {
    fn parse(provider: &str, name: &str, base: Option<&str>) -> Result<Self> {
        let kind = provider.parse().ok().filter(|kind| *kind != ProviderKind::Managed);
        let kind = kind.ok_or_else(|| CommandError::rule(format!("{provider:?} is not a third-party provider")))?;
        if let Some(why) = wrong_name(name) {
            return Err(CommandError::rule(format!("the name {why}")));
        }
        let base = base.map(|text| match base_url(text) {
            Ok(url) if text.len() <= BASE_URL_MAX => Ok(url.to_string()),
            Ok(_) => Err(CommandError::rule(format!("the base URL has more than {BASE_URL_MAX} characters"))),
            Err(error) => Err(CommandError::rule(error.to_string())),
        });
        Ok(Self { provider: kind, name: name.to_owned(), base_url: base.transpose()? })
    }
}

/// Reads the API key and strips the line break that `echo` adds.
fn key_from_stdin() -> Result<Secret> {
    let mut text = String::new();
    // Blocking is fine here: the process runs a single command.
    let read = std::io::stdin().take(CONNECTION_KEY_MAX as u64 + 1).read_to_string(&mut text);
    let bytes = read.map_err(|_| CommandError::rule("no key could be read from standard input"))?;
    let key = Secret::new(text.trim());
    let too_long = (bytes > CONNECTION_KEY_MAX).then(|| format!("must have at most {CONNECTION_KEY_MAX} bytes"));
    match too_long.or_else(|| wrong_key(key.expose())) {
        Some(why) => Err(CommandError::rule(format!("the key on standard input {why}"))),
        None => Ok(key),
    }
}

async fn create(context: &mut Context, name: &str, wanted: Wanted, key: Secret) -> Result {
    let account = account(context, name).await?;
    let new = NewConnection { provider: wanted.provider, name: wanted.name, key };
    let base_url = BaseUrl::Set(wanted.base_url.as_deref());
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let (saved, masked_key) =
        app::connection::save(&mut transaction, &context.actor, &context.ring, &account.uid, &new, base_url).await?;
    db::pool::commit(transaction).await?;
    Ok(json!({
        "id": saved.id, "provider": new.provider, "name": new.name, "maskedKey": masked_key,
        "models": model_ids(&context.models, new.provider),
    }))
}

async fn list(context: &mut Context, name: &str) -> Result {
    let account = account(context, name).await?;
    let connections = connections::list(&mut context.connection, &account.uid).await?;
    let entry = |connection: &connections::Connection| -> Value {
        let mut entry = json!(saved(&context.models, connection));
        entry["createdAt"] = json!(connection.created_at);
        if let Some(url) = &connection.base_url {
            entry["baseUrl"] = json!(url);
        }
        entry
    };
    Ok(json!({ "connections": connections.iter().map(entry).collect::<Vec<_>>() }))
}

async fn delete(context: &mut Context, text: &str) -> Result {
    let unknown = || CommandError::rule(format!("connection {text:?} does not exist"));
    let id = Uuid::try_parse(text).map_err(|_| unknown())?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    match app::connection::delete(&mut transaction, &context.actor, id, None).await {
        Err(app::Error::NotFound(_)) => return Err(unknown()),
        deleted => deleted?,
    }
    db::pool::commit(transaction).await?;
    Ok(json!({ "id": id, "deleted": true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_to_a_third_party() {
        for kind in ProviderKind::ALL {
            let parsed = Wanted::parse(kind.as_str(), "n", None);
            assert_eq!(parsed.is_ok(), *kind != ProviderKind::Managed, "{kind}");
        }
        for provider in ["", "OpenAI", "midjourney"] {
            assert!(Wanted::parse(provider, "n", None).is_err(), "{provider}");
        }
    }

    #[test]
    fn a_base_url_is_http_or_https_without_credentials() {
        for url in ["https://proxy.example/v1", "http://127.0.0.1:8000", "HTTP://host"] {
            assert!(Wanted::parse("fal", "n", Some(url)).is_ok(), "{url}");
        }
        for url in ["", "host:80", "ftp://host/", "https://", "https://a:b@host/", "https://host/#x"] {
            assert!(Wanted::parse("fal", "n", Some(url)).is_err(), "{url}");
        }
    }
}

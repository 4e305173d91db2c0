//! `canvas-gateway admin app`: lists and ends the apps of people, and lists OAuth clients.

use clap::Subcommand;
use db::audit::Event;
use domain::account::Scope;
use domain::limits::REDIRECT_URIS_MAX;
use serde_json::{Value, json};
use uuid::Uuid;

use super::announcer::Announcer;
use super::{CommandError, Context, Result, account};
use crate::oauth::{client, redirect};

/// The subcommands of `admin app`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the apps of an account that have not ended.
    List {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
    },
    /// End an app, immediately and permanently.
    Revoke {
        /// Id of the app.
        id: String,
    },
    /// Create, list and delete OAuth clients that need not register themselves.
    #[command(subcommand)]
    Client(ClientCommand),
}

/// The subcommands of `admin app client`.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// List a client; the answer has its `client_id`.
    Create {
        /// Name that people are shown; at most 80 characters.
        #[arg(long)]
        name: String,
        /// Address that gets the answers; repeated for up to 5.
        #[arg(long, required = true)]
        redirect_uri: Vec<String>,
    },
    /// Show the listed clients.
    List,
    /// Delete a listed client, and end its apps.
    Delete {
        /// The `client_id`.
        id: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::List { account } => list(context, &account).await,
        Command::Revoke { id } => revoke(context, &id).await,
        Command::Client(ClientCommand::Create { name, redirect_uri }) => create(context, &name, &redirect_uri).await,
        Command::Client(ClientCommand::List) => clients(context).await,
        Command::Client(ClientCommand::Delete { id }) => delete(context, &id).await,
    }
}

/// An account has few apps, so all are listed.
async fn list(context: &mut Context, name: &str) -> Result {
    let account = account(context, name).await?;
    let apps = db::oauth::page(&mut context.connection, &account.uid, None, i64::MAX).await?;
    let entry = |app: &db::oauth::App| {
        json!({
            "id": app.id, "clientId": app.client.id, "name": app.client.name, "host": app.client.host, "kind": app.client.kind,
            "scopes": app.scopes.iter().collect::<Vec<Scope>>(), "createdAt": app.created_at, "expiresAt": app.expires_at,
            "lastUsedAt": app.last_used_at, "budgets": app.budgets,
        })
    };
    Ok(json!({ "apps": apps.iter().map(entry).collect::<Vec<Value>>() }))
}

async fn revoke(context: &mut Context, named: &str) -> Result {
    let unknown = || CommandError::rule(format!("app {named:?} does not exist"));
    let id = Uuid::try_parse(named).map_err(|_| unknown())?;
    let announcer = Announcer::prepare(&context.config)?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let account = app::oauth::end_app(&mut transaction, &context.actor, id, None).await?.ok_or_else(unknown)?;
    db::pool::commit(transaction).await?;
    announcer.revoked(&account).await;
    Ok(json!({ "id": id, "account": account }))
}

async fn create(context: &mut Context, name: &str, redirect_uris: &[String]) -> Result {
    if name.is_empty() || name != client::shown_name(name) {
        let why = "a name has 1 to 80 characters, none of them invisible, and single spaces";
        return Err(CommandError::rule(why));
    }
    if redirect_uris.len() > REDIRECT_URIS_MAX {
        return Err(CommandError::rule(format!("a client has at most {REDIRECT_URIS_MAX} redirect addresses")));
    }
    let schemes = &context.config.oauth_redirect_schemes;
    if let Some(wrong) = redirect_uris.iter().find(|uri| !redirect::is_usable(uri, schemes)) {
        return Err(CommandError::rule(format!(
            "{wrong:?} is not a redirect address: https, or http on 127.0.0.1, [::1] or localhost, or a scheme of \
             CANVAS_OAUTH_REDIRECT_SCHEMES, without a user or a fragment"
        )));
    }
    let client = Uuid::now_v7();
    let id = format!("{}{client}", client::LISTED);
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let created_at = db::oauth::list_client(&mut transaction, &id, name, redirect_uris).await?;
    db::audit::write(&mut transaction, &context.actor, None, &Event::ClientListed { client }).await?;
    db::pool::commit(transaction).await?;
    Ok(json!({ "clientId": id, "name": name, "redirectUris": redirect_uris, "createdAt": created_at }))
}

async fn clients(context: &mut Context) -> Result {
    let clients = db::oauth::listed_clients(&mut context.connection, None).await?;
    let entry = |client: &db::oauth::ListedClient| {
        json!({
            "clientId": client.id, "name": client.name, "redirectUris": client.redirect_uris,
            "createdAt": client.created_at,
        })
    };
    Ok(json!({ "clients": clients.iter().map(entry).collect::<Vec<Value>>() }))
}

async fn delete(context: &mut Context, id: &str) -> Result {
    let announcer = Announcer::prepare(&context.config)?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let accounts = db::oauth::delete_client(&mut transaction, id).await?;
    let accounts = accounts.ok_or_else(|| CommandError::rule(format!("client {id:?} does not exist")))?;
    // Only ids of this form are listed.
    let client = id.strip_prefix(client::LISTED).and_then(|id| Uuid::try_parse(id).ok()).unwrap_or_default();
    let event = Event::ClientDeleted { client, apps: accounts.len() as u64 };
    db::audit::write(&mut transaction, &context.actor, None, &event).await?;
    db::pool::commit(transaction).await?;
    for account in &accounts {
        announcer.revoked(account).await;
    }
    Ok(json!({ "clientId": id, "endedApps": accounts.len() }))
}

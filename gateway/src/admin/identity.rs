//! `canvas-gateway admin identity`: the people at OpenID providers who sign in to an account.

use clap::Subcommand;
use db::audit::Event;
use db::identities::Listed;
use domain::limits::IDENTITIES_MAX;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{CommandError, Context, Result, account};

/// The subcommands of `admin identity`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the identities of an account.
    List {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
    },
    /// Let a person at a provider sign in to an account.
    Link {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
        /// Id of the provider; `main` for that of CANVAS_OIDC_ISSUER.
        #[arg(long, default_value = "main")]
        provider: String,
        /// The person's id at the provider: the claim `sub`.
        #[arg(long)]
        subject: String,
    },
    /// Take an identity from an account.
    Unlink {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
        /// Id of the identity.
        id: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::List { account } => list(context, &account).await,
        Command::Link { account, provider, subject } => link(context, &account, &provider, &subject).await,
        Command::Unlink { account, id } => unlink(context, &account, &id).await,
    }
}

async fn list(context: &mut Context, name: &str) -> Result {
    let account = account(context, name).await?;
    let identities = db::identities::list(&mut context.connection, &account.uid).await?;
    Ok(json!({ "uid": account.uid, "identities": identities.iter().map(entry).collect::<Vec<_>>() }))
}

fn entry(identity: &Listed) -> Value {
    json!({
        "id": identity.id, "provider": identity.provider, "issuer": identity.issuer, "subject": identity.subject,
        "email": identity.email, "createdAt": identity.created_at, "lastSigninAt": identity.last_signin_at,
    })
}

async fn link(context: &mut Context, name: &str, provider: &str, subject: &str) -> Result {
    let settings = ::identity::settings::load(&context.config)?;
    let settings = settings.iter().find(|settings| settings.id == provider);
    let settings = settings.ok_or_else(|| CommandError::rule(format!("there is no provider {provider:?}")))?;
    if subject.is_empty() || subject.chars().count() > ::identity::provider::SUBJECT_MAX {
        return Err(CommandError::rule("a subject has 1 to 255 characters"));
    }
    let account = account(context, name).await?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let identity = db::identities::lock(&mut transaction, provider, &settings.issuer, subject).await?;
    if identity.account.as_ref().is_some_and(|owner| *owner != account.uid) {
        return Err(CommandError::rule("the identity is that of another account"));
    }
    if identity.account.is_none() {
        let locked = db::identities::lock_account(&mut transaction, Some(&account.uid), None).await?;
        let locked = locked.ok_or_else(|| CommandError::rule(format!("account {name:?} was deleted")))?;
        if locked.identities >= IDENTITIES_MAX {
            return Err(CommandError::rule(format!("an account has at most {IDENTITIES_MAX} identities")));
        }
        db::identities::link(&mut transaction, identity.id, &account.uid).await?;
        let event = Event::IdentityLinked { identity: identity.id };
        db::audit::write(&mut transaction, &context.actor, Some(&account.uid), &event).await?;
    }
    db::pool::commit(transaction).await?;
    Ok(json!({ "uid": account.uid, "id": identity.id, "provider": provider, "subject": subject }))
}

async fn unlink(context: &mut Context, name: &str, id: &str) -> Result {
    let account = account(context, name).await?;
    let unknown = || CommandError::rule(format!("the account has no identity {id:?}"));
    let identity = Uuid::try_parse(id).map_err(|_| unknown())?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    if !db::identities::unlink(&mut transaction, &account.uid, identity).await? {
        return Err(unknown());
    }
    let event = Event::IdentityUnlinked { identity };
    db::audit::write(&mut transaction, &context.actor, Some(&account.uid), &event).await?;
    db::pool::commit(transaction).await?;
    Ok(json!({ "uid": account.uid, "id": identity }))
}

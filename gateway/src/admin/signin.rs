//! `canvas-gateway admin signin`: checks the OpenID providers that people sign in with.

use ::identity::provider::Provider;
use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::{CommandError, Context, Result};

/// The subcommands of `admin signin`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Ask providers for everything that a sign-in needs from them, and tell each outcome.
    Check {
        /// Id of the provider; all when omitted.
        id: Option<String>,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Check { id } = command;
    let settings = ::identity::settings::load(&context.config)?;
    let wanted: Vec<_> =
        settings.into_iter().filter(|settings| id.as_ref().is_none_or(|id| *id == settings.id)).collect();
    if wanted.is_empty() {
        let which = id.map_or("no provider is configured".to_owned(), |id| format!("there is no provider {id:?}"));
        return Err(CommandError::rule(which));
    }
    let outward =
        egress::Settings { allow: &context.config.egress_allow, ca_file: context.config.egress_ca_file.as_deref() };
    let client = egress::Client::load(outward)?;
    let mut checked = Vec::new();
    for settings in wanted {
        let redirect = format!("{}/console/oidc/{}/callback", context.config.public_url, settings.id);
        let provider = Provider::new(settings, client.clone());
        let steps = provider.check().await;
        let is_ok = steps.iter().all(|(_, outcome)| outcome.is_ok());
        let outcome = |outcome: std::result::Result<String, String>| match outcome {
            Ok(found) => json!({ "ok": true, "found": found }),
            Err(problem) => json!({ "ok": false, "problem": problem }),
        };
        let steps: Map<String, Value> = steps.into_iter().map(|(step, it)| (step.to_owned(), outcome(it))).collect();
        let id = &provider.settings.id;
        checked.push(json!({ "id": id, "ok": is_ok, "redirectUri": redirect, "steps": steps }));
    }
    Ok(json!({ "ok": checked.iter().all(|provider| provider["ok"] == true), "providers": checked }))
}

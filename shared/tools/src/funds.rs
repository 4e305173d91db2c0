//! Work that costs more than there is.

use client::Item;
use domain::counted;
use domain::model::{Capability, Model};
use serde_json::{Value, json};

use crate::answer::Next;
use crate::call::Call;
use crate::failure::{Failure, Retry};

/// Maximum number of models in an answer.
const MODELS_MAX: usize = 10;
/// Maximum number of outputs of a call.
const OUTPUTS_MAX: i64 = 8;

/// Returns the refusal of a budget as it is. Adds the balance to another refusal for its price, and the models with all of these capabilities that the balance can pay, with the
/// number of outputs of each. If the call, which would make `outputs` images or videos, can make fewer or cheaper ones, adds that
/// call as the next step; else says what is missing, and that only a person can change it.
pub async fn add_affordable_models(
    failure: Failure,
    call: &Call,
    capabilities: &[Capability],
    outputs: usize,
) -> Failure {
    // What is left of it, and until when, is in the details.
    if failure.refusal.budget.is_some() {
        return failure;
    }
    let Ok(status) = call.client.get_auth_status().await.and_then(|status| status.value()) else { return failure };
    let balance = status.credit_balance;
    let budget = failure.refusal.max_credits.map_or(balance, |cap| cap.min(balance));
    let price = failure.refusal.credit_cost.unwrap_or_default();
    let mut failure = failure.with_detail("balance", balance.into());
    failure.message = format!("it costs {}, and {budget} can be spent ({balance} in all)", counted(price, "credit"));
    let list = call.client.list_models().query_if("capability", capabilities.first()).query("limit", 100);
    let models = list.await.and_then(|read| read.items()).map(|(models, _)| models).unwrap_or_default();
    let up_to = |model: &Model| if model.credit_cost > 0 { budget / model.credit_cost } else { i64::MAX };
    let fits = |model: &Model| {
        let has = |capability: &Capability| model.capabilities.iter().any(|it| it == capability);
        capabilities.iter().all(has) && up_to(model) > 0
    };
    let fitting: Vec<Model> = models.iter().filter_map(Item::value).filter(fits).take(MODELS_MAX).collect();
    let is_cheaper = |model: &&Model| model.credit_cost * outputs as i64 <= budget;
    let affordable = (budget * outputs as i64 / price.max(1)) as usize;
    let mut changed = call.arguments.clone();
    if affordable > 0 && ["count", "targets"].iter().any(|name| changed.contains_key(*name)) {
        if let Some(Value::Array(targets)) = changed.get_mut("targets") {
            targets.truncate(affordable);
        }
        if changed.contains_key("count") {
            changed.insert("count".to_owned(), affordable.into());
        }
        changed.entry("asked").or_insert_with(|| outputs.into());
        failure =
            failure.then(Next::new(call.tool, changed.into(), "as many as can be paid; ask a person about the others"));
    } else if outputs > 0
        && let Some(cheaper) = fitting.iter().find(is_cheaper)
    {
        changed.insert("model".to_owned(), cheaper.handle.clone().into());
        failure = failure.then(Next::new(call.tool, changed.into(), "a model that can be paid"));
    }
    if failure.next.is_empty() {
        failure.retry = Retry::Never;
        failure.set_detail("missing", (price - budget).into());
        failure.message += match failure.refusal.max_credits {
            Some(cap) if cap < balance => "; a person has to agree to a higher maxCredits",
            _ => "; whoever operates the service can grant credit: ask a person, do not retry",
        };
    }
    let fitting = fitting.iter().map(|it| {
        json!({"model": it.handle, "name": it.name, "creditCost": it.credit_cost, "outputsUpTo": up_to(it).min(OUTPUTS_MAX)})
    });
    failure.with_detail("fitting", fitting.collect())
}

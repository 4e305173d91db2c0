//! Work that costs more than there is.

use serde_json::{Value, json};

use crate::answer::Next;
use crate::call::Call;
use crate::failure::Failure;

/// Maximum number of models in an answer.
const MODELS_MAX: usize = 10;

/// Adds the balance to a refusal for its price, and what would fit: models with all of these capabilities, and the number of outputs of
/// each that can be paid. Where `outputs` pictures or videos, which the call would make, can be fewer or cheaper, the call that fits.
pub async fn add_affordable_models(failure: Failure, call: &Call, capabilities: &[&str], outputs: usize) -> Failure {
    let Ok(status) = call.client.get_auth_status().await else { return failure };
    let balance = status.json()["creditBalance"].as_i64().unwrap_or_default();
    let budget = failure.details["maxCredits"].as_i64().map_or(balance, |cap| cap.min(balance));
    let price = failure.details["creditCost"].as_i64().unwrap_or_default();
    let mut failure = failure.with_detail("balance", balance.into());
    failure.message = format!("it costs {price} credits, and {budget} can be spent ({balance} in all)");
    let list = call.client.list_models().query_if("capability", capabilities.first()).query("limit", 100);
    let Ok(read) = list.await else { return failure };
    let read = read.json();
    let fits = |model: &Value| -> Option<Value> {
        let has = |it: &&str| model["capabilities"].as_array().is_some_and(|all| all.contains(&json!(it)));
        let price = model["creditCost"].as_i64().filter(|_| capabilities.iter().all(has))?;
        let count = if price > 0 { budget / price } else { i64::MAX };
        (count > 0).then(|| json!({"model": model["handle"], "name": model["name"], "creditCost": price, "outputsUpTo": count.min(4)}))
    };
    let fitting: Vec<Value> =
        read["models"].as_array().into_iter().flatten().filter_map(fits).take(MODELS_MAX).collect();
    let is_cheaper = |model: &&Value| model["creditCost"].as_i64().is_some_and(|one| one * outputs as i64 <= budget);
    let affordable = (budget * outputs as i64 / price.max(1)) as usize;
    let mut changed = call.arguments.clone();
    if affordable > 0 && ["count", "targets"].iter().any(|name| changed.contains_key(*name)) {
        if let Some(Value::Array(targets)) = changed.get_mut("targets") {
            targets.truncate(affordable);
        }
        if changed.contains_key("count") {
            changed.insert("count".to_owned(), affordable.into());
        }
        failure =
            failure.then(Next::new(call.tool, changed.into(), "as many as can be paid; ask a person about the others"));
    } else if outputs > 0
        && let Some(cheaper) = fitting.iter().find(is_cheaper)
    {
        changed.insert("model".to_owned(), cheaper["model"].clone());
        failure = failure.then(Next::new(call.tool, changed.into(), "a model that can be paid"));
    }
    failure.with_detail("fitting", fitting.into())
}
